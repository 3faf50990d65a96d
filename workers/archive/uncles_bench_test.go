package archive

import (
	"context"
	"encoding/binary"
	"flag"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// Main net has 1.3 million uncles, about one in every twelfth block.
var benchUncles = flag.Int("uncles", 100_000, "uncles in the file that is measured; main net has 1300000")

// made is a file of that many uncles, of which a part of the blocks is known.
type made struct {
	*Uncles
	blocks []Uncled // without their lists
}

// makeUncles writes the file as a build does, in segments of the size of era1 files.
func makeUncles(b *testing.B) made {
	b.Helper()
	path := filepath.Join(b.TempDir(), "made.uncles")
	f := must[*os.File](b)(os.Create(path))
	defer f.Close()
	m := made{}
	segments := func(yield func(*Segment, error) bool) {
		noise := rand.NewChaCha8([32]byte{1})
		m.blocks = m.blocks[:0]
		n := uint64(0)
		var last common.Hash
		for left := *benchUncles; left > 0; {
			s := &Segment{Range: Range{First: n, Parent: last}}
			for ; n < s.First+MaxEra1Blocks && left > 0; n += 12 {
				u := Uncled{Number: n + n/12%7}
				noise.Read(u.Hash[:])
				u.List = must[[]byte](b)(rlp.EncodeToBytes([]*types.Header{noisy(noise, u.Number)}))
				s.Uncled = append(s.Uncled, u)
				if len(m.blocks) < 1<<16 || n%(12*16) == 0 {
					m.blocks = append(m.blocks, Uncled{Number: u.Number, Hash: u.Hash})
				}
				left--
			}
			noise.Read(s.Hash[:])
			s.Last, last = n-1, s.Hash
			if !yield(s, nil) {
				return
			}
		}
	}
	if err := Write(context.Background(), f, segments); err != nil {
		b.Fatal(err)
	}
	m.Uncles = must[*Uncles](b)(OpenUncles(path))
	b.Cleanup(func() { m.Close() })
	return m
}

// noisy is an uncle as they are on main net: nothing in it is empty.
func noisy(noise *rand.ChaCha8, n uint64) *types.Header {
	h := &types.Header{
		Number: new(big.Int).SetUint64(n), Difficulty: new(big.Int).SetUint64(1<<52 + noise.Uint64()>>20), UncleHash: types.EmptyUncleHash,
		GasLimit: 12_500_000, GasUsed: 12_400_000, Time: 1_600_000_000 + n, Extra: make([]byte, 20),
	}
	for _, b := range [][]byte{h.ParentHash[:], h.Coinbase[:], h.Root[:], h.TxHash[:], h.ReceiptHash[:], h.Bloom[:], h.Extra, h.MixDigest[:], h.Nonce[:]} {
		noise.Read(b)
	}
	return h
}

func BenchmarkUncles(b *testing.B) {
	m := makeUncles(b)
	b.Logf("%d uncles, %d bytes each with what belongs to it, index of %d bytes", m.Count(), uint64(m.Size())/m.Count(), m.IndexSize())
	buf := make([]byte, 0, 4096)
	lookup := func(name string, ask func(Uncled) (list []byte, held bool, err error), want bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i += 40009 // a prime: another page each time
				block := m.blocks[i%len(m.blocks)]
				if _, held, err := ask(block); err != nil || held != want {
					b.Fatalf("block %d: %v %v", block.Number, held, err)
				}
			}
		})
	}
	lookup("ByNumber", func(u Uncled) ([]byte, bool, error) { return m.ByNumber(buf, u.Number) }, true)
	lookup("ByNumberNone", func(u Uncled) ([]byte, bool, error) { return m.ByNumber(buf, u.Number+1) }, true)
	lookup("ByHash", func(u Uncled) ([]byte, bool, error) { return m.ByHash(buf, u.Hash) }, true)
	lookup("ByHashMiss", func(u Uncled) ([]byte, bool, error) {
		binary.BigEndian.PutUint64(u.Hash[24:], 0)
		u.Hash[1] ^= 0x55
		return m.ByHash(buf, u.Hash)
	}, false)
	b.Run("Decode", func(b *testing.B) {
		b.ReportAllocs()
		list, _, err := m.ByNumber(nil, m.blocks[0].Number)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := DecodeUncles(list); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			u := must[*Uncles](b)(OpenUncles(m.Path()))
			u.Close()
		}
	})
	b.Run("Verify", func(b *testing.B) {
		b.SetBytes(m.Size())
		for b.Loop() {
			if err := m.Verify(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	for b.Loop() {
		b.SetBytes(makeUncles(b).Size())
	}
}

// BenchmarkSegment is what a build does with an era1 file.
func BenchmarkSegment(b *testing.B) {
	path := sepolia(b, sepolia21)
	st := must[os.FileInfo](b)(os.Stat(path))
	b.SetBytes(st.Size())
	for b.Loop() {
		e := must[*Era1](b)(Open(path))
		if _, err := e.Segment(b.Context()); err != nil {
			b.Fatal(err)
		}
		e.Close()
	}
	b.ReportMetric(8192*float64(b.N)/b.Elapsed().Seconds(), "blocks/s")
}
