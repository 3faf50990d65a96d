package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// Verify reads the whole file and checks what OpenUncles has not: that the content
// is what its SHA-256 was taken of, and that each list can be read and is found by
// its block's hash. What is wrong is reported with ErrDamaged.
//
// That the uncles are those of their blocks was checked when the file was built, with
// headers that it does not hold. Whoever wants to know builds it again, from another
// source: the digests are the same.
func (u *Uncles) Verify(ctx context.Context) error {
	return u.readable(func() error {
		digest := sha256.New()
		for rest := u.data[headSize:]; len(rest) > 0; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(len(rest), 4<<20)
			digest.Write(rest[:n])
			rest = rest[n:]
		}
		// The lists come first: their own checksums say better where it is.
		prefixes, err := u.verifyLists(ctx)
		if err != nil {
			return err
		}
		for i := range u.count() {
			if key := u.hash(i); uint32(key>>32) != prefixes[uint32(key)] {
				return damaged(u.at.hashes+int64(hashSize*i), "hashes: entry %#016x is not of the block at its place", key)
			}
		}
		if got := [32]byte(digest.Sum(nil)); got != u.head.digest {
			return damaged(headSize, "head: the SHA-256 of the content is %x, want %x", got, u.head.digest)
		}
		return nil
	})
}

// verifyLists reads every list and returns the first bytes of the blocks' hashes as
// the hashes section has them.
func (u *Uncles) verifyLists(ctx context.Context) ([]uint32, error) {
	prefixes := make([]uint32, u.count())
	var total uint64
	for i := range prefixes {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		hash, list, err := u.record(i)
		if err != nil {
			return nil, err
		}
		n, err := verifyList(list)
		if err != nil {
			p := u.place(i)
			return nil, damaged(u.at.lists+int64(p.offset), "lists: block %d: %v", p.number, err)
		}
		total += uint64(n)
		prefixes[i] = uint32(hashKey(hash) >> 32)
	}
	if total != u.head.uncles {
		return nil, damaged(72, "head: %d uncles, the lists have %d", u.head.uncles, total)
	}
	return prefixes, nil
}

// verifyList counts the uncles of a list whose encoding is the one that it was
// hashed in.
func verifyList(list []byte) (int, error) {
	var uncles []*types.Header
	if err := rlp.DecodeBytes(list, &uncles); err != nil {
		return 0, err
	}
	if len(uncles) == 0 {
		return 0, errors.New("no uncle")
	}
	again, err := rlp.EncodeToBytes(uncles)
	if err == nil && !bytes.Equal(again, list) {
		err = errors.New("the uncles encode to something else")
	}
	return len(uncles), err
}
