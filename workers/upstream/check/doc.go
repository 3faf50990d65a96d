// Package check finds out what Ethereum nodes can do for lookups of uncles: which
// chain they serve, how far back they hold the bodies of blocks, whether their answers
// to the two uncle methods are true, how large a batch they take, how fast they are.
//
// Run asks all nodes side by side, each in its own goroutine and at most for the time
// that is given, and returns when all of them have ended. A Report is written by one
// goroutine and belongs to the caller afterwards.
//
// Nothing that a node says is believed that can be checked: headers must hash to their
// hash, uncles to their header's sha3Uncles, by the code with which package upstream
// verifies what it serves. What could not be found out is nil in a Report, and its
// Unknown says why; nothing is guessed.
//
// Calls cost money at many providers. A node that holds all of a known chain gets about
// 120 of them, 100 of these being one batch of eth_getUncleCountByBlockNumber; one whose
// first block has to be searched for 30 to 60 more; one of an unknown chain without
// uncles up to 300 more. A Report says how many it took.
//
// No Report carries more of a URL than upstream.Redact leaves, nor characters that a
// terminal would obey.
package check
