// Package archive reads Ethereum history from files, since nodes may drop that of
// before the merge (EIP-4444): the era1 files in which it is exchanged, and uncles
// files, which hold what a lookup needs of them, ready to be answered from.
//
// Nothing in a file is believed before it was checked. Open and OpenUncles check the
// layout; every block that is handed out has passed the checks that need no other
// block; Verify checks the whole file. Every length is bounded by the file and by a
// limit before memory is taken for it, so that a hostile file costs no more than an
// honest one.
//
// An Era1, an Uncles and a Set may be used by any number of goroutines. The package
// starts none and does not cache blocks. It does not judge consensus rules: a file
// whose root or last block a caller does not know from elsewhere proves only that it
// agrees with itself.
//
// # Uncles files
//
// An uncles file says of each block in its ranges which uncles it has. Most blocks
// have none, so it holds the others only: main net's 15.5 million blocks from before
// the merge take less than 1 GB of it. Of a block that is in no range it says nothing;
// nor of a hash that it does not hold, as it holds no hashes of blocks without uncles.
//
// The bytes are a function of the blocks and the chain: whoever builds a file over
// the same ranges gets the same one, from era1 files or from a node, in one go or in
// many. Integers are little-endian. The sections follow one another without a gap,
// and the last one ends the file.
//
//	head, 144 bytes
//	    0  8   "ommer\x00u\n"
//	    8  4   version, 1
//	   12  4   zero
//	   16  8   chain ID, 0 when unknown
//	   24  32  hash of the genesis block, zero when unknown
//	   56  8   number of ranges
//	   64  8   number of places: of blocks that have uncles
//	   72  8   number of uncles
//	   80  8   length of the lists in bytes
//	   88  4   CRC-32C of the ranges
//	   92  4   CRC-32C of the places
//	   96  4   CRC-32C of the hashes
//	  100  4   zero
//	  104  32  SHA-256 of all that follows the head
//	  136  4   zero
//	  140  4   CRC-32C of the 140 bytes before
//	ranges, 80 bytes each, ascending, neither overlapping nor touching
//	    0  8   number of the first block
//	    8  8   number of the last block
//	   16  32  hash of the first block's parent
//	   48  32  hash of the last block
//	places, 16 bytes each, by number
//	    0  8   number of a block that has uncles
//	    8  8   where its list begins, from the start of the lists
//	hashes, 8 bytes each, ascending
//	    0  8   the first 4 bytes of the block's hash as a big-endian number, times
//	           2^32, plus the position of its place
//	lists, one behind the other in the order of the places
//	    0  32  hash of the block
//	   32  4   CRC-32C of the hash and the list
//	   36  -   RLP of the list of uncles, as in the block's body; its keccak256 is
//	           the sha3Uncles of the block's header
//
// The lists are not compressed. Deflate, with one of them as its dictionary, makes
// those of Sepolia, whose blocks are empty, a third as long; it makes nothing shorter
// of an uncle that is all hashes and a dense bloom, as later ones of main net are. A
// lookup would take five times as long.
package archive
