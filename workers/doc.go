// Package workers answers questions: it is the schema.Resolver behind the bus.
//
// A Pool divides the questions among shards by the block that they are about. A shard
// is an actor, so it owns its part of the cache and needs no lock. A question finds
// its block in the cache and is answered, or waits: whoever asks for the same block
// in the meantime waits with it, and the source is asked once. What is kept is a
// block, not a question, with its uncles as the JSON that callers are sent; so an
// index without an uncle and a block without uncles are answered from the cache too.
//
// A Source may know which blocks stand near the head of the chain: it is a Viewer then. A
// question by number, latest, safe or finalized for a block in its view becomes one by the
// block's hash before it reaches a shard. So what is kept of it is true for ever, a reorg
// changes at once which block is answered from, and no source is asked as long as the
// block stays where it is. If the view shows that the block has no uncles, or the chain
// had merged by then (Config.Merged), the answer is null and nobody is asked.
//
// For the rest, how long an answer is true decides how long it is kept:
//
//	a block by hash             for good: it cannot change
//	a block by number           for good at or below the last finalized block of the
//	                            node that answered, else at most Fresh
//	that there is no such block at most Fresh, and until the view has one there
//	a block by tag              never; who asks while the answer is on its way shares it
//
// A block that was fetched by number or tag is known by its hash from then on. One that
// was fetched by hash is known by its number only if it is final and the view has it
// there: nodes hold blocks that were displaced, too. As the names of a block are those of
// two shards, the one tells the other, which does without when its mailbox is full. Both
// names count in the size of the cache, since each may outlive the other.
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
