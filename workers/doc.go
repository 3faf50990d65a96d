// Package workers answers questions: it is the schema.Resolver behind the bus.
//
// A Pool divides the questions among shards by the block that they are about. A shard
// is an actor, so it owns its part of the cache and needs no lock. A question finds
// its block in the cache and is answered, or waits: whoever asks for the same block
// in the meantime waits with it, and the source is asked once. What is kept is a
// block, not a question, with its uncles as the JSON that callers are sent; so an
// index without an uncle and a block without uncles are answered from the cache too.
//
// How long an answer is true decides how long it is kept:
//
//	a block by hash             for good: it cannot change
//	a block by number           for good at or below the last finalized block of the
//	                            node that answered, else at most Fresh
//	that there is no such block at most Fresh
//	a block by tag              never; who asks while the answer is on its way shares it
//
// Fresh counts from the moment the source was asked. What is kept for good and what
// is not have separate room, so that no flood of questions for blocks that do not
// exist or are not final pushes out what is true for ever.
//
// Kept lists what is kept for good, by what it is worth, and Warm asks for blocks from
// such a list: see packages cache and snapshot.
//
// The source is nodes, or an archive of history and then nodes: see Archived.
//
// Resolve never blocks. Its Receiver is called on a runner of the actors or on the
// caller's own stack. A Receiver that panics takes the shard's cache with it and
// fails who waits there; the shard is started anew. Goroutines are those of the
// actors and one per block that is being fetched, which Stop waits for.
package workers
