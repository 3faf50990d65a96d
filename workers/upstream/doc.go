// Package upstream asks Ethereum JSON-RPC nodes for blocks and their uncles, and
// believes nothing that it cannot check.
//
// A Set is a list of nodes in order of preference. Block asks the first of them in
// one round trip, a JSON-RPC batch of the block and of its two possible uncles, and
// verifies the answer: the header hashes to the block's hash (and to the requested
// one), and the uncles hash to the header's sha3Uncles. So a false uncle, uncles in
// the wrong order, and the null of a node that has dropped the block's body are all
// seen, and the next node is asked. What is left to trust is which block stands at a
// number or a tag.
//
// Near the head that is no single answer's word. A Set follows the heads of its nodes, by
// looking at them and, where a node tells of them by WebSocket, when it does, and makes
// one chain of them that View shows: blocks with their uncles, each the parent of the
// next, and the safe and the finalized one. canon has the rules. A reorg is followed; no
// node that lags or disagrees takes the view back. Its blocks prove nothing about work or
// votes: a node that makes up a whole chain is not seen through.
//
// Every method may be called from any goroutine. Block blocks its caller until its
// context ends at the latest. The goroutines are those of Run, one per node, and one
// per connection being made or subscribed to; Run and Close wait for them.
//
// URLs of nodes hold secrets in their path, query or user part. No error, log line
// or metric of this package carries more of a URL than Redact leaves, and the text of
// others' errors is searched for the rest of it.
package upstream
