package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// An e2store file is a row of entries, each a type, a length and a value
// (https://github.com/status-im/nimbus-eth2/blob/stable/docs/e2store.md):
//
//	0  2  type, little-endian
//	2  4  length of the value, little-endian
//	6  2  zero
//	8  -  the value

// entryHead is the length of an entry without its value.
const entryHead = 8

// entryType says what the value of an entry holds.
type entryType uint16

// The types that an era1 file is made of
// (https://github.com/eth-clients/e2store-format-specs/blob/main/formats/era1.md).
const (
	typeHeader          entryType = 0x03
	typeBody            entryType = 0x04
	typeReceipts        entryType = 0x05
	typeTotalDifficulty entryType = 0x06
	typeAccumulator     entryType = 0x07
	typeVersion         entryType = 0x3265
	typeIndex           entryType = 0x3266
)

// String returns the name of the type as messages show it.
func (t entryType) String() string {
	switch t {
	case typeHeader:
		return "header"
	case typeBody:
		return "body"
	case typeReceipts:
		return "receipts"
	case typeTotalDifficulty:
		return "total difficulty"
	case typeAccumulator:
		return "accumulator"
	case typeVersion:
		return "version"
	case typeIndex:
		return "block index"
	default:
		return fmt.Sprintf("type %#04x", uint16(t))
	}
}

// ErrDamaged is what every error about the content of a file wraps: it is no
// era1 file, or was truncated, or altered.
var ErrDamaged = errors.New("damaged history file")

// damaged says what is wrong at a byte of the file.
func damaged(off int64, format string, args ...any) error {
	return fmt.Errorf("%w: byte %d: %s", ErrDamaged, off, fmt.Sprintf(format, args...))
}

// span is a part of the file: the value of an entry.
type span struct {
	off, size int64
}

// end is the position of the first byte behind the span.
func (s span) end() int64 { return s.off + s.size }

// readEntry reads the head of the entry at off, which has to be of type want and
// to end at or before limit. It returns where the value is.
func readEntry(r io.ReaderAt, want entryType, off, limit int64) (span, error) {
	if limit-off < entryHead {
		return span{}, damaged(off, "no room for the %v entry", want)
	}
	var head [entryHead]byte
	if err := readFull(r, head[:], off); err != nil {
		return span{}, err
	}
	if got := entryType(binary.LittleEndian.Uint16(head[:])); got != want {
		return span{}, damaged(off, "entry is %v, want %v", got, want)
	}
	if head[6] != 0 || head[7] != 0 {
		return span{}, damaged(off, "reserved bytes of the %v entry are not zero", want)
	}
	v := span{off: off + entryHead, size: int64(binary.LittleEndian.Uint32(head[2:]))}
	if v.size > limit-v.off {
		return span{}, damaged(off, "%v entry of %d bytes, only %d follow", want, v.size, limit-v.off)
	}
	return v, nil
}

// readSized reads the head of an entry whose value has a fixed size.
func readSized(r io.ReaderAt, want entryType, size, off, limit int64) (span, error) {
	v, err := readEntry(r, want, off, limit)
	if err == nil && v.size != size {
		err = damaged(off, "%v entry of %d bytes, want %d", want, v.size, size)
	}
	return v, err
}

// readFull fills b from off. A file that ends early has shrunk since it was opened.
func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return damaged(off+int64(n), "the file ends here")
	default:
		return fmt.Errorf("read byte %d: %w", off, err)
	}
}
