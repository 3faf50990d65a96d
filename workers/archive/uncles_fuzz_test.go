package archive

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// FuzzUncles alters files: what opens answers with lists whose checksum is right, or
// says that it is damaged.
func FuzzUncles(f *testing.F) {
	f.Add(uncles(f, segment(f, 0, 8)))
	f.Add(uncles(f, segment(f, 3, 5), segment(f, 20, 29)))
	f.Add(uncles(f, segment(f, 0, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Most alterations would end at the checksums; make them right where the
		// layout allows it.
		if len(data) >= headSize {
			forged := bytes.Clone(data)
			seal(forged, sections{})
			if h, err := parseHead(forged); err == nil {
				if at, err := h.sections(int64(len(forged))); err == nil {
					seal(forged, at)
					data = forged
				}
			}
		}
		u, err := newUncles("x", data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		var numbers []uint64
		for _, r := range u.Ranges() {
			numbers = append(numbers, r.First, r.Last)
		}
		for i := range min(u.count(), 64) {
			numbers = append(numbers, u.place(i).number)
		}
		for _, n := range numbers {
			list, held, err := u.ByNumber(nil, n)
			if held == (err != nil) || err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatalf("block %d, which is covered: %x %v %v", n, list, held, err)
			}
		}
		if u.Verify(t.Context()) != nil {
			return
		}
		for i := range min(u.count(), 64) {
			hash, want, err := u.record(i)
			if err != nil {
				t.Fatal(err)
			}
			if list, held, err := u.ByHash(nil, hash); err != nil || !held {
				t.Fatalf("block %v of a verified file: %x %v %v, want %x", hash, list, held, err, want)
			}
			var uncles []*types.Header
			if err := rlp.DecodeBytes(want, &uncles); err != nil {
				t.Fatal(err)
			}
		}
	})
}
