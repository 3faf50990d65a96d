// Package archive reads Ethereum history from files: the era1 files in which
// pre-merge history is exchanged since nodes may drop it (EIP-4444).
//
// Nothing in a file is believed before it was checked. Open checks the layout;
// every block that is handed out has passed the checks that need no other block;
// Verify checks the whole file. Every length is bounded by the file and by a
// limit before memory is taken for it, so that a hostile file costs no more than
// an honest one.
//
// An Era1 may be used by any number of goroutines. The package starts none, does
// not cache blocks, and never writes. It does not judge consensus rules: a file
// whose root a caller does not know from elsewhere proves only that it agrees
// with itself.
package archive
