package workers

import (
	"context"
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// fullUncle is an uncle whose fields hold what those of a busy block do, so that it
// compresses as badly.
func fullUncle(r *rand.Rand) *types.Header {
	h := &types.Header{
		Number: big.NewInt(r.Int64N(15_000_000)), Difficulty: big.NewInt(r.Int64()), Extra: make([]byte, 20),
		GasLimit: 30_000_000, GasUsed: r.Uint64N(30_000_000), Time: r.Uint64N(1 << 31),
	}
	for _, field := range [][]byte{
		h.ParentHash[:], h.UncleHash[:], h.Coinbase[:], h.Root[:], h.TxHash[:], h.ReceiptHash[:], h.Bloom[:], h.MixDigest[:], h.Nonce[:], h.Extra,
	} {
		for i := range field {
			field[i] = byte(r.Uint32())
		}
	}
	return h
}

// TestBytesAreCounted compares what the metrics say of the cache with what the heap grows
// by, with blocks that have no uncle, one and two.
func TestBytesAreCounted(t *testing.T) {
	for uncles := range upstream.MaxUncles + 1 {
		src := &script{block: func(_ context.Context, s schema.Selector) (upstream.Block, bool, error) {
			h := s.Hash()
			r := rand.New(rand.NewPCG(1, binary.BigEndian.Uint64(h[:])))
			b := upstream.Block{Header: fullUncle(r)}
			for range uncles {
				b.Uncles = append(b.Uncles, fullUncle(r))
			}
			return b, true, nil
		}}
		p := newPool(t, Config{Source: src, CacheBytes: 1 << 40, Shards: 2})
		blocks := 20_000 / (1 + 4*uncles)
		lookup(p, schema.Question{Block: hashed(blocks)}, time.Time{}) // so that all there is but entries is there
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // what was in a sync.Pool is gone after two
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before, counted := heap(), p.Figures().CacheBytes
		for n := range blocks {
			if a := lookup(p, schema.Question{Block: hashed(n)}, time.Time{}); a.Err != nil {
				t.Fatal(a.Err)
			}
		}
		grown := heap() - before
		f := p.Figures()
		counted = f.CacheBytes - counted
		ratio := float64(grown) / float64(counted)
		t.Logf("%d uncles: the heap grew by %d bytes per block, %d are counted (%.2f)", uncles, grown/int64(blocks), counted/int64(blocks), ratio)
		if ratio < 0.8 || ratio > 1.25 {
			t.Errorf("%d uncles: the heap grew by %d bytes, %d are counted", uncles, grown, counted)
		}
		if f.CacheEntries != int64(blocks)+1 || f.CacheLimit != 1<<40 {
			t.Errorf("%d entries, %d bytes at most; want %d and %d", f.CacheEntries, f.CacheLimit, blocks+1, int64(1)<<40)
		}
	}
}
