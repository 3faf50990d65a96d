package archive

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/ethereum/go-ethereum/common"
)

// The layout of an uncles file, see the package comment.
const (
	unclesMagic   = "ommer\x00u\n"
	unclesVersion = 1

	headSize  = 144
	rangeSize = 80
	placeSize = 16
	hashSize  = 8
	listHead  = common.HashLength + crc32.Size
	maxList   = 2*maxHeader + 16 // no block has more than two uncles
	maxNumber = 1<<63 - 1        // as far as JSON-RPC can name a block
	maxPlaces = 1<<32 - 1        // a position has 4 bytes
	maxLists  = 1 << 60
	emptyList = "\xc0" // RLP of a list without anything
)

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Chain says which chain blocks are of.
type Chain struct {
	ID      uint64      // 0 when unknown
	Genesis common.Hash // zero when unknown
}

// Range is a row of blocks whose numbers follow one another, each the parent of the
// next.
type Range struct {
	First, Last uint64
	Parent      common.Hash // of the first block
	Hash        common.Hash // of the last block
}

// Blocks is the number of blocks in the range.
func (r Range) Blocks() uint64 { return r.Last - r.First + 1 }

func (r Range) append(b []byte) []byte {
	b = le.AppendUint64(b, r.First)
	b = le.AppendUint64(b, r.Last)
	b = append(b, r.Parent[:]...)
	return append(b, r.Hash[:]...)
}

func parseRange(b []byte) Range {
	return Range{
		First: le.Uint64(b), Last: le.Uint64(b[8:]),
		Parent: common.Hash(b[16:48]), Hash: common.Hash(b[48:80]),
	}
}

// head is the first section.
type head struct {
	chain                  Chain
	ranges, places, uncles uint64
	lists                  uint64 // bytes
	rangesSum, placesSum   uint32
	hashesSum              uint32
	digest                 [32]byte
}

func (h *head) append(b []byte) []byte {
	at := len(b)
	b = append(b, unclesMagic...)
	b = le.AppendUint32(b, unclesVersion)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, h.chain.ID)
	b = append(b, h.chain.Genesis[:]...)
	for _, n := range []uint64{h.ranges, h.places, h.uncles, h.lists} {
		b = le.AppendUint64(b, n)
	}
	for _, sum := range []uint32{h.rangesSum, h.placesSum, h.hashesSum, 0} {
		b = le.AppendUint32(b, sum)
	}
	b = append(b, h.digest[:]...)
	b = le.AppendUint32(b, 0)
	return le.AppendUint32(b, checksum(b[at:]))
}

// isUncles reports whether a file that begins with b is an uncles file.
func isUncles(b []byte) bool { return bytes.HasPrefix(b, []byte(unclesMagic)) }

func parseHead(b []byte) (h head, err error) {
	switch {
	case len(b) < len(unclesMagic) || !isUncles(b):
		return h, damaged(0, "head: no uncles file")
	case len(b) < headSize:
		return h, damaged(int64(len(b)), "head: the file ends here")
	case le.Uint32(b[140:]) != checksum(b[:140]):
		return h, damaged(140, "head: the checksum is wrong")
	case le.Uint32(b[8:]) != unclesVersion:
		return h, damaged(8, "head: version %d, this program reads version %d", le.Uint32(b[8:]), unclesVersion)
	case le.Uint32(b[12:]) != 0 || le.Uint32(b[100:]) != 0 || le.Uint32(b[136:]) != 0:
		return h, damaged(12, "head: reserved bytes are not zero")
	}
	return head{
		chain:  Chain{ID: le.Uint64(b[16:]), Genesis: common.Hash(b[24:56])},
		ranges: le.Uint64(b[56:]), places: le.Uint64(b[64:]), uncles: le.Uint64(b[72:]), lists: le.Uint64(b[80:]),
		rangesSum: le.Uint32(b[88:]), placesSum: le.Uint32(b[92:]), hashesSum: le.Uint32(b[96:]),
		digest: [32]byte(b[104:136]),
	}, nil
}

// sections are where the parts of a file begin, and where it ends.
type sections struct{ ranges, places, hashes, lists, end int64 }

// sections lays the parts out, in a file of size bytes. Counts that could not be added
// up are refused first, and then whatever is not as long as the counts say.
func (h *head) sections(size int64) (s sections, err error) {
	switch {
	case h.ranges == 0 || h.ranges > maxPlaces:
		return s, damaged(56, "head: %d ranges", h.ranges)
	case h.places > maxPlaces:
		return s, damaged(64, "head: %d places", h.places)
	case h.lists > maxLists:
		return s, damaged(80, "head: lists of %d bytes", h.lists)
	}
	s = h.layout()
	if s.end != size {
		return s, damaged(min(s.end, size), "%s: the file ends after %d bytes, its head says %d", s.at(size), size, s.end)
	}
	return s, nil
}

func (h *head) layout() (s sections) {
	s.ranges = headSize
	s.places = s.ranges + int64(h.ranges)*rangeSize
	s.hashes = s.places + int64(h.places)*placeSize
	s.lists = s.hashes + int64(h.places)*hashSize
	s.end = s.lists + int64(h.lists)
	return s
}

// at names the section that has byte off.
func (s sections) at(off int64) string {
	switch {
	case off < s.ranges:
		return "head"
	case off < s.places:
		return "ranges"
	case off < s.hashes:
		return "places"
	case off < s.lists:
		return "hashes"
	case off < s.end:
		return "lists"
	default:
		return "end"
	}
}

// place is where a block that has uncles has its list.
type place struct {
	number, offset uint64
}

func parsePlace(b []byte) place { return place{le.Uint64(b), le.Uint64(b[8:])} }

func (p place) append(b []byte) []byte {
	return le.AppendUint64(le.AppendUint64(b, p.number), p.offset)
}

// hashKey is what entries of the hashes of a block are greater than or equal to.
func hashKey(h common.Hash) uint64 { return uint64(binary.BigEndian.Uint32(h[:])) << 32 }
