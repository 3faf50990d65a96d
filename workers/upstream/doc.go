// Package upstream asks Ethereum JSON-RPC nodes for blocks and their uncles, and
// believes nothing that it cannot check.
//
// # Which node
//
// Block asks one node after the other until one gives an answer that is worth having. The
// order is: nodes that are up, know of the block's height, are not known to have pruned it and
// do not seem to hang, before the others; of these the preferred first; of those preferred alike the one for which
// the time of its answers times the lookups in its hands is least. A node is left
//
//	that has failed                        at once
//	that seems to hang                     when nothing came of it for 4 times as long as
//	                                       nearly all of its answers take, 0.5 s at least
//	that takes longer than nearly ever     for 5 % of the lookups: a hedge, the first
//	                                       answer counts
//	that is overloaded, by its own word    for as long as it says (Retry-After), or else
//	                                       1 s and twice that each time up to 30 s
//	that has a line standing before it     until there are fewer, see package codel
//	that is down                           for 0.5 s up to 10 s, 10 s up to 10 min after a
//	                                       false answer; then one lookup finds out
//
// # Round trips
//
// A block and its two possible uncles are asked for together, in a JSON-RPC batch. Each
// node has an actor that gathers lookups into such round trips: one that comes while
// nothing is under way goes at once, others wait for each other for 2 ms or until there
// are 32. A node that refuses a batch is asked for smaller ones, and in the end for one
// call at a time.
//
// # What is believed
//
// The header hashes to the block's hash (and to the requested one), and the uncles hash
// to the header's sha3Uncles. So a false uncle, uncles in the wrong order, and the null
// of a node that has dropped the block's body are all seen, and the next node is asked.
// What is left to trust is which block stands at a number or a tag.
//
// Near the head that is no single answer's word. A Set follows the heads of its nodes, by
// looking at them and, where a node tells of them by WebSocket, when it does, and makes
// one chain of them that View shows: blocks with their uncles, each the parent of the
// next, from the last final one on if that is not too far, and the safe and the finalized
// one. canon has the rules. A reorg is followed; no
// node that lags or disagrees takes the view back. Its blocks prove nothing about work or
// votes: a node that makes up a whole chain is not seen through.
//
// Every method may be called from any goroutine. Block blocks its caller until its
// context ends at the latest. The goroutines are those of Run, one per node, those of the
// actors, and one per round trip or connection being made or subscribed to; Run and
// Close wait for them.
//
// URLs of nodes hold secrets in their path, query or user part. No error, log line
// or metric of this package carries more of a URL than Redact leaves, and the text of
// others' errors is searched for the rest of it.
package upstream
