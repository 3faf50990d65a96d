package snapshot

import (
	"encoding/hex"
	"iter"
	"strconv"
	"strings"

	"github.com/ommer/ommer/schema"
)

// splitLines lists lines without their ends. The last one ends too.
func splitLines(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s != "" {
			line, rest, _ := strings.Cut(s, "\n")
			if !yield(line) {
				return
			}
			s = rest
		}
	}
}

// parse reads a block as its String writes it, and in no other way.
func parse(line string) (b schema.Selector, ok bool) {
	digits, ok := strings.CutPrefix(line, "0x")
	if !ok {
		return b, false
	}
	if len(digits) == 2*len(schema.Hash{}) {
		var h schema.Hash
		if _, err := hex.Decode(h[:], []byte(digits)); err != nil {
			return b, false
		}
		b = schema.BlockHash(h)
	} else {
		n, err := strconv.ParseUint(digits, 16, 63) // no block is numbered beyond
		if err != nil {
			return b, false
		}
		b = schema.Number(n)
	}
	return b, b.String() == line
}
