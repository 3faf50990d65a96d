// Package build makes uncles files: from era1 files, from a server that has such
// files, or from an Ethereum node.
//
// Whatever comes in is verified before it is kept: an era1 file as a whole, a node's
// blocks by their hashes, and all of them by the chain of parents. What is kept goes
// to a journal beside the file that is being made, PATH.part, in pieces; a build that
// was ended in any way goes on from there, and makes the same file as one that was
// not. The file has its name only once it is whole.
//
// What a source cannot be caught at is a chain of its own. The genesis block is known
// for the public networks; for the other end compare the last block's hash, which is
// in the file, with what another source says.
//
// A Build is one call, and waits for every goroutine that it starts. Two builds of
// one file exclude each other. URLs hold secrets: no error carries more of one than
// upstream.Redact leaves.
package build
