package schema

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// Hash is a Keccak-256 hash. It is go-ethereum's common.Hash without the import.
type Hash [32]byte

// String returns the hash as 0x-prefixed lower-case hex.
func (h Hash) String() string { return "0x" + hex.EncodeToString(h[:]) }

// Tag names a block by its role instead of its number.
type Tag uint8

// The tags of the execution API. Their values travel in bus frames: append only.
const (
	Latest Tag = iota + 1
	Earliest
	Pending
	Safe
	Finalized
)

var tagNames = [...]string{Latest: "latest", Earliest: "earliest", Pending: "pending", Safe: "safe", Finalized: "finalized"}

// String returns the tag as callers write it.
func (t Tag) String() string {
	if t < Latest || t > Finalized {
		return "tag(" + strconv.Itoa(int(t)) + ")"
	}
	return tagNames[t]
}

// tagNamed returns the tag with the given name. Names match exactly.
func tagNamed(name []byte) (Tag, bool) {
	switch string(name) {
	case "latest":
		return Latest, true
	case "earliest":
		return Earliest, true
	case "pending":
		return Pending, true
	case "safe":
		return Safe, true
	case "finalized":
		return Finalized, true
	default:
		return 0, false
	}
}

// Kind says which way a Selector names its block.
type Kind uint8

// The kinds. Their values travel in bus frames: append only.
const (
	ByNumber Kind = iota + 1
	ByHash
	ByTag
)

// Selector names a block: by number, by hash or by tag. It is comparable and so
// can be the key of a map. The zero value names nothing.
type Selector struct {
	kind   Kind
	tag    Tag
	number uint64
	hash   Hash
}

// Number selects the canonical block of that height.
func Number(n uint64) Selector { return Selector{kind: ByNumber, number: n} }

// BlockHash selects the block with that hash, canonical or not.
func BlockHash(h Hash) Selector { return Selector{kind: ByHash, hash: h} }

// Tagged selects the block that has the role t at the moment of asking.
func Tagged(t Tag) Selector { return Selector{kind: ByTag, tag: t} }

// Kind says which of the accessors below is meaningful.
func (s Selector) Kind() Kind { return s.kind }

// Number is the height of a selector by number, else 0.
func (s Selector) Number() uint64 { return s.number }

// Hash is the hash of a selector by hash, else zero.
func (s Selector) Hash() Hash { return s.hash }

// Tag is the tag of a selector by tag, else 0.
func (s Selector) Tag() Tag { return s.tag }

// String returns the selector as a caller would write it in JSON, without quotes.
func (s Selector) String() string { return string(s.appendText(nil)) }

func (s Selector) appendText(dst []byte) []byte {
	switch s.kind {
	case ByNumber:
		return strconv.AppendUint(append(dst, "0x"...), s.number, 16)
	case ByHash:
		return hex.AppendEncode(append(dst, "0x"...), s.hash[:])
	case ByTag:
		return append(dst, s.tag.String()...)
	default:
		return append(dst, "none"...)
	}
}

// Affinity is a number that depends on the block alone and is the same in every process:
// questions about one block can be brought to one place by it.
func (s Selector) Affinity() uint64 {
	switch s.kind {
	case ByHash:
		return binary.BigEndian.Uint64(s.hash[:])
	case ByTag:
		return uint64(s.tag) << 56
	default:
		return s.number
	}
}
