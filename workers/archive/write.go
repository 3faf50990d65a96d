package archive

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
)

// Write writes an uncles file of segments, which have to come in the order of their
// numbers and the same twice. w is written from its start.
func Write(ctx context.Context, w io.WriteSeeker, segments iter.Seq2[*Segment, error]) error {
	var d draft
	for s, err := range segments {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.add(s); err != nil {
			return err
		}
	}
	if len(d.ranges) == 0 {
		return fmt.Errorf("%w: there is no block", ErrChain)
	}
	return d.write(ctx, w, segments)
}

// draft is a file without its lists.
type draft struct {
	chain  Chain
	ranges []Range
	places []place
	hashes []uint64
	uncles uint64
	lists  uint64 // bytes so far
}

func (d *draft) add(s *Segment) (err error) {
	if d.chain, err = d.chain.Join(s.Chain); err != nil {
		return err
	}
	if d.ranges, err = joined(d.ranges, s.Range); err != nil {
		return err
	}
	for _, b := range s.Uncled {
		if len(d.places) >= maxPlaces {
			return fmt.Errorf("%w: more than %d blocks with uncles", ErrChain, maxPlaces)
		}
		uncles, err := countUncles(b.List)
		if err != nil {
			return fmt.Errorf("%w: the uncles of block %d: %w", ErrChain, b.Number, err)
		}
		d.hashes = append(d.hashes, hashKey(b.Hash)|uint64(len(d.places)))
		d.places = append(d.places, place{b.Number, d.lists})
		d.lists += uint64(listHead + len(b.List))
		d.uncles += uint64(uncles)
	}
	return nil
}

// joined appends a range, or lengthens the last one by it.
func joined(ranges []Range, r Range) ([]Range, error) {
	if len(ranges) == 0 {
		return append(ranges, r), nil
	}
	last := &ranges[len(ranges)-1]
	switch {
	case r.First <= last.Last:
		return ranges, fmt.Errorf("%w: block %d is there twice", ErrChain, r.First)
	case r.First > last.Last+1:
		return append(ranges, r), nil
	case r.Parent != last.Hash:
		return ranges, fmt.Errorf("%w: the parent of block %d is %v, want %v", ErrChain, r.First, r.Parent, last.Hash)
	}
	last.Last, last.Hash = r.Last, r.Hash
	return ranges, nil
}

func countUncles(list []byte) (int, error) {
	content, rest, err := rlp.SplitList(list)
	if err != nil {
		return 0, err
	}
	if len(rest) > 0 {
		return 0, rlp.ErrMoreThanOneValue
	}
	return rlp.CountValues(content)
}

// write writes the file, the head last: until then it is none.
func (d *draft) write(ctx context.Context, w io.WriteSeeker, segments iter.Seq2[*Segment, error]) error {
	slices.SortFunc(d.hashes, cmp.Compare[uint64])
	h := head{
		chain:  d.chain,
		ranges: uint64(len(d.ranges)), places: uint64(len(d.places)), uncles: d.uncles, lists: d.lists,
	}
	digest := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(w, digest), 1<<20)
	if _, err := w.Seek(headSize, io.SeekStart); err != nil {
		return err
	}
	section := func(size, n int, appendTo func(b []byte, i int) []byte) uint32 {
		b := make([]byte, 0, size*n)
		for i := range n {
			b = appendTo(b, i)
		}
		_, _ = buffered.Write(b) // Flush tells of its error
		return checksum(b)
	}
	h.rangesSum = section(rangeSize, len(d.ranges), func(b []byte, i int) []byte { return d.ranges[i].append(b) })
	h.placesSum = section(placeSize, len(d.places), func(b []byte, i int) []byte { return d.places[i].append(b) })
	h.hashesSum = section(hashSize, len(d.hashes), func(b []byte, i int) []byte { return le.AppendUint64(b, d.hashes[i]) })

	var record []byte
	for s, err := range segments {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, b := range s.Uncled {
			record = appendRecord(record[:0], b.Hash, b.List)
			if _, err := buffered.Write(record); err != nil {
				return err
			}
		}
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	h.digest = [32]byte(digest.Sum(nil))
	if _, err := w.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := w.Write(h.append(nil))
	return err
}

// appendRecord appends the list of a block as it stands among the lists.
func appendRecord(b []byte, hash common.Hash, list []byte) []byte {
	at := len(b)
	b = append(b, hash[:]...)
	b = le.AppendUint32(b, 0)
	b = append(b, list...)
	le.PutUint32(b[at+common.HashLength:], recordSum(b[at:]))
	return b
}
