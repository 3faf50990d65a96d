package archive

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Verify reads the whole file and checks that each block's parent is the block
// before it, that total difficulties add up, that each block's uncles are those
// its header commits to, and that the accumulator is the root of the header
// records. What is wrong is reported with ErrDamaged.
//
// visit, when not nil, is called with each block once it passed its own checks,
// in order; an error from it ends Verify and is returned as it is. What visit
// gathered is worth nothing until Verify returns nil.
//
// A file that passes is whole and unaltered as far as its accumulator is known to
// be right: from its name, or from a list of known roots.
func (e *Era1) Verify(ctx context.Context, visit func(*Block) error) error {
	return e.verify(ctx, everyBody, visit)
}

// verify is Verify of the bodies that are wanted only: to decompress them is most of
// the work.
func (e *Era1) verify(ctx context.Context, body func(*types.Header) bool, visit func(*Block) error) error {
	var (
		records = make([]node, 0, e.Count())
		parent  common.Hash
		total   *big.Int
	)
	for i := range e.Count() {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := e.start + uint64(i)
		var b *Block
		var td node // little-endian
		err := e.within(n, func(r *block) (err error) {
			at := r.next
			if b, err = r.block(n, body); err != nil {
				return err
			}
			if (i > 0 || n == 0) && b.Header.ParentHash != parent {
				return damaged(at, "the parent is %v, want %v", b.Header.ParentHash, parent)
			}
			v, err := r.entry(typeTotalDifficulty)
			if err != nil {
				return err
			}
			if v.size != int64(len(td)) {
				return damaged(v.off, "total difficulty of %d bytes, want %d", v.size, len(td))
			}
			if err := readFull(e.file, td[:], v.off); err != nil {
				return err
			}
			got := td.big()
			if total == nil { // of a file within the chain, any start will do
				total = new(big.Int)
				if n > 0 {
					total.Sub(got, b.Header.Difficulty)
				}
			}
			if total.Add(total, b.Header.Difficulty); total.Cmp(got) != 0 || total.Cmp(b.Header.Difficulty) < 0 {
				return damaged(v.off, "total difficulty %v, want %v", got, total)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if visit != nil {
			if err := visit(b); err != nil {
				return err
			}
		}
		parent = b.Hash
		records = append(records, hashPair(node(b.Hash), td))
	}
	if got := accumulatorRoot(records); got != node(e.accumulator) {
		return fmt.Errorf("archive: %s: %w", e.path,
			damaged(e.bounds[e.Count()], "the accumulator is %v, the blocks give %v", e.accumulator, common.Hash(got)))
	}
	return nil
}

// node is a node of an SSZ hash tree.
type node [32]byte

// big reads a little-endian integer.
func (n node) big() *big.Int {
	slices.Reverse(n[:])
	return new(big.Int).SetBytes(n[:])
}

func hashPair(a, b node) node {
	var pair [64]byte
	copy(pair[:32], a[:])
	copy(pair[32:], b[:])
	return sha256.Sum256(pair[:])
}

// accumulatorRoot is the hash tree root of the SSZ list of header records with a
// limit of MaxEra1Blocks, given the roots of the records: the tree over the
// records padded with zeros to the limit, mixed with their number
// (https://github.com/ethereum/consensus-specs/blob/dev/ssz/simple-serialize.md#merkleization).
// It overwrites records.
func accumulatorRoot(records []node) node {
	count := len(records)
	var zero node // the root of a tree of zeros as high as the level
	for width := MaxEra1Blocks; width > 1; width /= 2 {
		if len(records)%2 == 1 {
			records = append(records, zero)
		}
		for i := range len(records) / 2 {
			records[i] = hashPair(records[2*i], records[2*i+1])
		}
		records = records[:len(records)/2]
		zero = hashPair(zero, zero)
	}
	var length node
	binary.LittleEndian.PutUint64(length[:], uint64(count))
	return hashPair(records[0], length)
}
