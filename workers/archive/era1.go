package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// MaxEra1Blocks is the number of blocks in a full era1 file; only the last one of
// a chain, which ends at the merge, holds fewer.
const MaxEra1Blocks = 8192

// ErrNotHeld reports a block number outside of a file.
var ErrNotHeld = errors.New("block is not in this file")

// Era1 is an open era1 file. Its layout, from go-ethereum's internal/era/onedb
// and the format's specification:
//
//	version | (header body receipts total-difficulty)* | other* | accumulator | block index
//
// The block index ends the file: the first block's number, for each block the
// position of its header entry relative to the index, and the number of blocks,
// 8 bytes each, little-endian.
type Era1 struct {
	path        string
	file        io.ReaderAt
	closer      io.Closer
	start       uint64
	bounds      []int64 // where each block begins, then where the last one must end
	accumulator common.Hash
	inflaters   inflaters
}

// Open opens the era1 file at path and checks its layout: version, block index,
// accumulator, and, when the file is named as the specification asks, that the
// accumulator is the one in the name. The blocks are checked as they are read,
// and as a whole by Verify.
func Open(path string) (*Era1, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	var e *Era1
	if err == nil {
		e, err = newEra1(path, f, st.Size())
	}
	if err != nil {
		_ = f.Close() // only read from
		return nil, fmt.Errorf("archive: %s: %w", path, err)
	}
	e.closer = f
	return e, nil
}

// newEra1 reads the layout of the file r of size bytes.
func newEra1(path string, r io.ReaderAt, size int64) (*Era1, error) {
	const (
		word = 8
		// version, accumulator, and an index without any block
		least = entryHead + entryHead + common.HashLength + entryHead + 2*word
	)
	if size < least {
		return nil, damaged(size, "the file ends here, too short for era1")
	}
	if _, err := readSized(r, typeVersion, 0, 0, size); err != nil {
		return nil, fmt.Errorf("no era1 file: %w", err)
	}

	// From the end: the count, which says where the index begins.
	var b [word]byte
	if err := readFull(r, b[:], size-word); err != nil {
		return nil, err
	}
	count := binary.LittleEndian.Uint64(b[:])
	if count == 0 || count > MaxEra1Blocks {
		return nil, damaged(size-word, "the index ends with a count of %d blocks, want 1 to %d (truncated?)", count, MaxEra1Blocks)
	}
	indexSize := int64(2+count) * word
	indexAt := size - indexSize - entryHead
	accAt := indexAt - entryHead - common.HashLength
	if accAt <= entryHead {
		return nil, damaged(size-word, "the index ends with a count of %d blocks, too many for a file of %d bytes (truncated?)", count, size)
	}
	at, err := readSized(r, typeIndex, indexSize, indexAt, size)
	if err != nil {
		return nil, err
	}
	index := make([]byte, at.size)
	if err = readFull(r, index, at.off); err != nil {
		return nil, err
	}

	e := &Era1{path: path, file: r, bounds: make([]int64, 0, count+1)}
	e.start = binary.LittleEndian.Uint64(index)
	if e.start > 1<<63-1-count { // as far as JSON-RPC can name a block
		return nil, damaged(at.off, "the first block is number %d", e.start)
	}
	prev := int64(entryHead - 1)
	for i := range int64(count) {
		// Relative to the index, so negative; one that overflows is out of order.
		off := indexAt + int64(binary.LittleEndian.Uint64(index[word*(1+i):]))
		if off <= prev || off >= accAt {
			return nil, damaged(at.off+word*(1+i), "block %d is said to begin at byte %d, after %d and before %d is possible",
				e.start+uint64(i), off, prev, accAt)
		}
		e.bounds = append(e.bounds, off)
		prev = off
	}
	e.bounds = append(e.bounds, accAt)

	if at, err = readSized(r, typeAccumulator, common.HashLength, accAt, indexAt); err != nil {
		return nil, err
	}
	if err := readFull(r, e.accumulator[:], at.off); err != nil {
		return nil, err
	}
	if want := namedRoot(filepath.Base(path)); want != "" && want != e.accumulator.Hex()[2:10] {
		return nil, damaged(at.off, "the accumulator is %v, the file is named for %s", e.accumulator, want)
	}
	return e, nil
}

// namedRoot returns the 8 hexadecimal digits of the accumulator root in a name
// like sepolia-00021-b8814b14.era1, or "" when the file is named otherwise.
func namedRoot(name string) string {
	const tail = len("-00021-b8814b14.era1")
	if len(name) <= tail || filepath.Ext(name) != ".era1" {
		return ""
	}
	t := name[len(name)-tail:]
	epoch, root := t[1:6], t[7:15]
	if t[0] != '-' || t[6] != '-' || !all(epoch, "0123456789") || !all(root, "0123456789abcdef") {
		return ""
	}
	return root
}

// all reports whether s has no characters but those of set.
func all(s, set string) bool {
	for i := range len(s) {
		if strings.IndexByte(set, s[i]) < 0 {
			return false
		}
	}
	return true
}

// Close closes the file. Reads that are under way fail.
func (e *Era1) Close() error {
	if e.closer == nil {
		return nil
	}
	return e.closer.Close()
}

// Path is where the file was opened.
func (e *Era1) Path() string { return e.path }

// Start is the number of the first block.
func (e *Era1) Start() uint64 { return e.start }

// Count is the number of blocks, 1 to MaxEra1Blocks. Their numbers follow one
// another.
func (e *Era1) Count() int { return len(e.bounds) - 1 }

// Accumulator is the root that the file states for its blocks; Verify computes it.
func (e *Era1) Accumulator() common.Hash { return e.accumulator }

// Blocks iterates over the blocks in order, each read as Block reads it. It ends
// with the first error.
func (e *Era1) Blocks() iter.Seq2[*Block, error] {
	return func(yield func(*Block, error) bool) {
		for i := range e.Count() {
			b, err := e.Block(e.start + uint64(i))
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}
