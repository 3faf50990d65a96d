package archive

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// FuzzEra1 alters files: what opens gives blocks that encode to what their hashes
// were taken of, or an error that says the file is damaged.
func FuzzEra1(f *testing.F) {
	f.Add(small(1))
	f.Add(small(3))
	f.Add(small(3)[:200])
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := inMemory(data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("open: %v", err)
			}
			return
		}
		if e.Count() > len(data)/8 {
			t.Fatalf("%d blocks in %d bytes", e.Count(), len(data))
		}
		for i := range min(e.Count(), 64) {
			b, err := e.Block(e.Start() + uint64(i))
			if err != nil {
				if !errors.Is(err, ErrDamaged) {
					t.Fatal(err)
				}
				continue
			}
			if got := b.Header.Hash(); got != b.Hash {
				t.Errorf("header encodes to %v, was read as %v", got, b.Hash)
			}
			if got := types.CalcUncleHash(b.Uncles); got != b.Header.UncleHash && len(b.Uncles) > 0 {
				t.Errorf("uncles encode to %v, the header has %v", got, b.Header.UncleHash)
			}
		}
	})
}

// FuzzBody splits bodies: what is accepted encodes to the bytes it was read from.
func FuzzBody(f *testing.F) {
	_, bodies := chain(3)
	for _, b := range bodies {
		f.Add(b)
	}
	f.Add([]byte{0xc2, 0xc0, 0xc0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var b Body
		if b.parse(raw) != nil {
			return
		}
		uncles, err := rlp.EncodeToBytes(b.Uncles)
		if err != nil || !bytes.Equal(uncles, b.UncleList) {
			t.Errorf("uncles %x encode to %x, %v", b.UncleList, uncles, err)
		}
		again, err := rlp.EncodeToBytes([]rlp.RawValue{b.Transactions, b.UncleList})
		if err != nil || !bytes.Equal(again, raw) {
			t.Errorf("body %x encodes to %x, %v", raw, again, err)
		}
		var whole types.Body
		if rlp.DecodeBytes(raw, &whole) == nil && crypto.Keccak256Hash(b.UncleList) != types.CalcUncleHash(whole.Uncles) {
			t.Errorf("go-ethereum reads other uncles from %x", raw)
		}
	})
}
