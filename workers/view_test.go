package workers

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// seen is a source that counts what is asked of it.
type seen struct {
	*upstream.Set
	asked atomic.Int64
}

func (s *seen) Block(ctx context.Context, sel schema.Selector) (upstream.Block, bool, error) {
	s.asked.Add(1)
	return s.Set.Block(ctx, sel)
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) { // polls a condition
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// atHead waits until a view has a head.
func atHead(t testing.TB, v Viewer, c upstreamtest.Chain) {
	t.Helper()
	eventually(t, fmt.Sprintf("the head is block %d", len(c)-1), func() bool {
		v := v.View(time.Now())
		return v != nil && v.At(schema.Tagged(schema.Latest)).Hash == schema.Hash(c[len(c)-1].Hash())
	})
}

// TestReorgChangesAnswers asks for everything near the head before and after a reorg, by
// number, tag and hash.
func TestReorgChangesAnswers(t *testing.T) {
	for _, depth := range []int{1, 5, 15} { // 15 is beyond what the view holds
		for _, ws := range []bool{false, true} {
			t.Run(fmt.Sprintf("depth %d, websocket %v", depth, ws), func(t *testing.T) {
				const head = 30
				before, after := upstreamtest.Generate(head, head-depth, "before"), upstreamtest.Generate(head+1, head-depth, "after")
				node := upstreamtest.Start(t, before[:20])
				url := node.URL
				if ws {
					url = node.WSURL
				}
				set := newSet(t, url)
				atHead(t, set, before[:20])
				p := newPool(t, Config{Source: set})
				node.SetChain(before)
				atHead(t, set, before)
				check := func(c upstreamtest.Chain, from int) {
					t.Helper()
					for n := from; n < len(c); n++ {
						for index := range 2 {
							if got := asked(p, schema.Number(uint64(n)), index); got != want(c, n, index) {
								t.Fatalf("block %d, %d: %.99s, want %.99s", n, index, got, want(c, n, index))
							}
						}
					}
					if got, want := asked(p, schema.Tagged(schema.Latest), 0), want(c, len(c)-1, 0); got != want {
						t.Fatalf("latest: %.99s, want %.99s", got, want)
					}
				}
				check(before, 20)
				node.SetChain(after)
				atHead(t, set, after)
				check(after, 20) // at once
				calls := node.Calls.Load()
				for n := 20; n <= head; n++ {
					for _, c := range []upstreamtest.Chain{before, after} {
						if got := asked(p, hashOf(c, n), 0); got != want(c, n, 0) {
							t.Errorf("block %v: %.99s, want %.99s", c[n].Hash(), got, want(c, n, 0))
						}
					}
				}
				// What was displaced and has no uncles was never asked for by its hash.
				if n := node.Calls.Load() - calls; depth == 1 && n > 40 {
					t.Errorf("%d calls for blocks that were known", n)
				}
				f := p.Figures()
				if f.Head != head+1 || f.Reorgs != 1 {
					t.Errorf("the figures are %+v", f)
				}
			})
		}
	}
}

// TestHotBlock asks for a block near the head as often as callers do.
func TestHotBlock(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain)
	set := &seen{Set: newSet(t, node.URL)}
	atHead(t, set, chain)
	p := newPool(t, Config{Source: set})
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			b, n := schema.Number(23), 23
			switch i % 3 {
			case 1:
				b = hashOf(chain, 23)
			case 2:
				b, n = schema.Tagged(schema.Latest), 24
			}
			if got := asked(p, b, 0); got != want(chain, n, 0) {
				t.Errorf("%v: %.99s, want %.99s", b, got, want(chain, n, 0))
			}
		})
	}
	all.Wait()
	if got := set.asked.Load(); got != 1 { // block 24 has no uncles, which its header says
		t.Errorf("the source was asked %d times, want once", got)
	}
}

// TestFinalBlockIsAskedOnce asks by number, and then by hash, on another shard.
func TestFinalBlockIsAskedOnce(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain)
	node.SetFinalized(20)
	set := &seen{Set: newSet(t, node.URL)}
	atHead(t, set, chain)
	eventually(t, "block 20 is final", func() bool { return set.View(time.Now()).Final(20) })
	p := newPool(t, Config{Source: set, Shards: 7})
	for n := 3; n < 12; n++ { // far below what the view holds
		before := set.asked.Load()
		if got := asked(p, schema.Number(uint64(n)), 0); got != want(chain, n, 0) {
			t.Fatalf("block %d: %.99s", n, got)
		}
		entries := func() int64 { return p.Figures().CacheEntries }
		eventually(t, "it is known by both names", func() bool { return entries() == 2*int64(n-2) })
		if got := asked(p, hashOf(chain, n), 0); got != want(chain, n, 0) {
			t.Fatalf("block %v: %.99s", chain[n].Hash(), got)
		}
		if got := set.asked.Load() - before; got != 1 {
			t.Errorf("block %d: the source was asked %d times, want once", n, got)
		}
	}
}

// TestFinalBlockOutlivesTheView asks by number for a block of the view before and when it
// is final, and again when it has left the view.
func TestFinalBlockOutlivesTheView(t *testing.T) {
	chain := upstreamtest.Generate(upstream.Window+30, upstream.Window+30, "long")
	node := upstreamtest.Start(t, chain[:24])
	set := &seen{Set: newSet(t, node.URL)}
	atHead(t, set, chain[:24])
	p := newPool(t, Config{Source: set})
	for n := 24; n < len(chain); n += 50 {
		if got := asked(p, schema.Number(23), 0); got != want(chain, 23, 0) {
			t.Fatalf("block 23: %.99s", got)
		}
		node.SetFinalized(23)
		eventually(t, "block 23 is final", func() bool { return set.View(time.Now()).Final(23) })
		node.SetChain(chain[:n])
		atHead(t, set, chain[:n])
	}
	node.SetChain(chain)
	atHead(t, set, chain)
	if at := set.View(time.Now()).At(schema.Number(23)); at != nil {
		t.Fatal("block 23 is in the view still")
	}
	before := set.asked.Load() // once by its hash, once by its number
	if got := asked(p, schema.Number(23), 0); got != want(chain, 23, 0) {
		t.Errorf("block 23: %.99s", got)
	}
	if got := set.asked.Load(); before > 2 || got > before {
		t.Errorf("the source was asked %d times, and then %d more", before, got-before)
	}
}

// TestNumberOfAHash asks by hash first. Only what stands in the view, and for good, is
// known by its number then.
func TestNumberOfAHash(t *testing.T) {
	chain, other := upstreamtest.Generate(30, 10, "one"), upstreamtest.Generate(30, 10, "other")
	node := upstreamtest.Start(t, chain[:12])
	node.SetFinalized(25)
	set := &seen{Set: newSet(t, node.URL)}
	atHead(t, set, chain[:12])
	node.SetChain(other) // the node holds its blocks
	node.SetChain(chain)
	atHead(t, set, chain)
	eventually(t, "block 25 is final", func() bool { return set.View(time.Now()).Final(25) })
	p := newPool(t, Config{Source: set, Shards: 7})
	ask := func(b schema.Selector, expect string, times int64) {
		t.Helper()
		before := set.asked.Load()
		if got := asked(p, b, 0); got != expect {
			t.Errorf("%v: %.99s, want %.99s", b, got, expect)
		}
		if got := set.asked.Load() - before; got != times {
			t.Errorf("%v: the source was asked %d times, want %d", b, got, times)
		}
	}
	entries := func() int64 { return p.Figures().CacheEntries }
	ask(hashOf(chain, 20), want(chain, 20, 0), 1)
	eventually(t, "final and canonical: both names", func() bool { return entries() == 2 })
	ask(schema.Number(20), want(chain, 20, 0), 0)
	ask(hashOf(other, 23), want(other, 23, 0), 1)
	ask(schema.Number(23), want(chain, 23, 0), 1)
	eventually(t, "one of two blocks of a number", func() bool { return entries() == 5 })
	ask(hashOf(chain, 29), want(chain, 29, 0), 1)
	if got := entries(); got != 6 {
		t.Errorf("%d entries, want 6: a block that is not final was kept by its number", got)
	}
}

// TestBlockToCome asks for a number until there is a block.
func TestBlockToCome(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain[:23])
	set := &seen{Set: newSet(t, node.URL)}
	atHead(t, set, chain[:23])
	p := newPool(t, Config{Source: set})
	for range 10 {
		if got := asked(p, schema.Number(23), 0); got != "null" {
			t.Fatalf("before it is there: %.99s", got)
		}
	}
	node.SetChain(chain)
	atHead(t, set, chain)
	if got := asked(p, schema.Number(23), 0); got != want(chain, 23, 0) {
		t.Errorf("once it is there: %.99s", got)
	}
}

// TestTagsStay has the node with the highest head go away.
func TestTagsStay(t *testing.T) {
	chain := testChain()
	ahead, behind := upstreamtest.Start(t, chain[:24]), upstreamtest.Start(t, chain[:21])
	ahead.SetFinalized(20)
	set := newSet(t, ahead.URL, behind.URL)
	atHead(t, set, chain[:24])
	eventually(t, "block 20 is safe", func() bool { _, ok := set.View(time.Now()).Safe(); return ok })
	p := newPool(t, Config{Source: set, CacheBytes: -1})
	ahead.Stop()
	eventually(t, "the node is down", func() bool {
		_, _, err := set.Block(t.Context(), schema.BlockHash(schema.Hash{1}))
		return err == nil && set.Ready() == nil && asked(p, schema.Number(24), 0) == "null"
	})
	for tag, n := range map[schema.Tag]int{schema.Latest: 23, schema.Safe: 20, schema.Finalized: 20} {
		if got := asked(p, schema.Tagged(tag), 0); got != want(chain, n, 0) {
			t.Errorf("%v: %.99s, want that of block %d", tag, got, n)
		}
	}
}

func TestMerged(t *testing.T) {
	src := &script{block: func(_ context.Context, s schema.Selector) (upstream.Block, bool, error) {
		b := oneUncle(19)
		b.Header.UncleHash = types.CalcUncleHash(b.Uncles)
		if s.Hash() == (schema.Hash{2}) {
			b.Header.Number = big.NewInt(19)
		}
		if s.Hash() == (schema.Hash{3}) {
			b.Uncles, b.Header.UncleHash = nil, types.EmptyUncleHash
		}
		return b, true, nil
	}}
	p := newPool(t, Config{Source: src, Merged: 20})
	tagged := schema.Tagged
	for _, b := range []schema.Selector{
		schema.Number(20), schema.Number(1 << 40), tagged(schema.Latest), tagged(schema.Safe), tagged(schema.Finalized), tagged(schema.Pending),
	} {
		if got := asked(p, b, 0); got != "null" {
			t.Errorf("%v: %.99s, want null", b, got)
		}
	}
	if got := src.asked.Load(); got > 0 {
		t.Errorf("the source was asked %d times", got)
	}
	uncle := string(newEntry(schema.Number(1), oneUncle(19), true, time.Time{}).uncles[0].json)
	for b, want := range map[schema.Selector]string{
		schema.Number(19):                "internal", // the source says it is block 20
		schema.BlockHash(schema.Hash{1}): "internal",
		schema.BlockHash(schema.Hash{2}): uncle,
		schema.BlockHash(schema.Hash{3}): "null",
	} {
		if got := asked(p, b, 0); got != want {
			t.Errorf("%v: %.99s, want %.99s", b, got, want)
		}
	}
	if _, _, err := p.askSource(t.Context(), schema.BlockHash(schema.Hash{1})); !errors.Is(err, upstream.ErrUntrue) {
		t.Errorf("uncles in a block of proof of stake: %v", err)
	}
}

// BenchmarkNearHead asks by number and by tag for what the view can place.
func BenchmarkNearHead(b *testing.B) {
	chain := testChain()
	node := upstreamtest.Start(b, chain[:24])
	set := newSet(b, node.URL)
	atHead(b, set, chain[:24])
	p := newPool(b, Config{Source: set})
	for name, s := range map[string]schema.Selector{"number": schema.Number(23), "tag": schema.Tagged(schema.Latest), "hash": hashOf(chain, 23)} {
		b.Run(name, func(b *testing.B) {
			to := make(answered, 1)
			b.ReportAllocs()
			for b.Loop() {
				p.Resolve(schema.Question{Block: s}, time.Now().Add(time.Hour), to)
				<-to
			}
		})
	}
}
