package workers

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/snapshot"
	"github.com/ommer/ommer/workers/upstream"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// hashed is a block by a hash that is made of a number.
func hashed(n int) schema.Selector {
	var h schema.Hash
	binary.BigEndian.PutUint64(h[:], uint64(n))
	return schema.BlockHash(h)
}

func one(context.Context, schema.Selector) (upstream.Block, bool, error) {
	return oneUncle(7), true, nil
}

// until waits for a condition.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestWarmStart asks at random, and has another worker start from what was kept: it gives
// the same answers, without its node.
func TestWarmStart(t *testing.T) {
	chain := testChain()
	for seed := range uint64(5) {
		node := upstreamtest.Start(t, chain)
		node.SetFinalized(12)
		nodes := newSet(t, node.URL)
		until(t, "a finalized block", func() bool { n, ok := nodes.Finalized(); return ok && n == 12 })
		old := newPool(t, Config{Source: nodes, Shards: 3})
		r := rand.New(rand.NewPCG(seed, 1))
		answers := map[schema.Question]string{}
		for range 200 {
			n := r.IntN(len(chain))
			q := schema.Question{Block: schema.Number(uint64(n)), Index: r.Uint64N(2)}
			if r.IntN(2) == 0 {
				q.Block = schema.BlockHash(schema.Hash(chain[n].Hash()))
			}
			a := lookup(old, q, time.Time{})
			if a.Err != nil {
				t.Fatal(a.Err)
			}
			if q.Block.Kind() == schema.ByHash || n <= 12 {
				answers[q] = string(a.Result)
			}
		}
		kept, err := old.Kept(snapshot.MaxBlocks)
		if err != nil {
			t.Fatal(err)
		}
		asked := map[schema.Selector]bool{}
		for q := range answers {
			asked[q.Block] = true
		}
		if len(kept) != len(asked) || !slices.EqualFunc(kept, kept, func(a, _ schema.Selector) bool { return asked[a] }) {
			t.Errorf("%d blocks are kept, %d were asked for", len(kept), len(asked))
		}
		path := filepath.Join(t.TempDir(), "hot")
		if err := snapshot.Write(path, snapshot.Snapshot{Chain: 1, Blocks: kept}); err != nil {
			t.Fatal(err)
		}
		blocks, err := snapshot.Read(path, 1)
		if err != nil {
			t.Fatal(err)
		}

		set := newSet(t, node.URL)
		until(t, "a finalized block", func() bool { n, ok := set.Finalized(); return ok && n == 12 })
		var cut atomic.Bool
		p := newPool(t, Config{Source: &script{block: func(ctx context.Context, s schema.Selector) (upstream.Block, bool, error) {
			if cut.Load() {
				return upstream.Block{}, false, errors.New("the node was asked again")
			}
			return set.Block(ctx, s)
		}}, Shards: 2})
		if rest := p.Warm(t.Context(), blocks); rest != nil {
			t.Errorf("%d blocks are left", len(rest))
		}
		cut.Store(true)
		for q, want := range answers {
			if a := lookup(p, q, time.Time{}); a.Err != nil || string(a.Result) != want {
				t.Fatalf("%v: %.99s %v, want %.99s", q, a.Result, a.Err, want)
			}
		}
		if f := p.Figures(); f.Lookups["miss"] != 0 || f.Lookups["hit"] != uint64(len(answers)) {
			t.Errorf("callers' lookups %v, want hits alone", f.Lookups)
		}
	}
}

// TestKeptInOrder lists a cache that is full while callers ask.
func TestKeptInOrder(t *testing.T) {
	const entries = 6000
	src := &script{block: func(context.Context, schema.Selector) (upstream.Block, bool, error) {
		return upstream.Block{}, true, nil
	}}
	p := newPool(t, Config{Source: src, Shards: 2, CacheBytes: entries * 256})
	ask := func(n int) {
		if a := lookup(p, schema.Question{Block: hashed(n)}, time.Time{}); a.Err != nil {
			t.Error(a.Err)
		}
	}
	const popular = 50
	for n := range entries {
		ask(n)
	}
	for round := range 2 {
		for n := range popular {
			ask(n)
		}
		for n := range entries {
			ask((round+1)*1_000_000 + n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	callers.Go(func() {
		for n := 3_000_000; ctx.Err() == nil; n++ {
			ask(n)
		}
	})
	for _, most := range []int{1, popular, 2000, 1 << 20} {
		kept, err := p.Kept(most)
		if err != nil {
			t.Fatal(err)
		}
		if most < entries/2 && len(kept) != most || len(kept) < min(most, entries/2) {
			t.Errorf("%d blocks, want %d", len(kept), most)
		}
		for i := range min(most, popular) {
			if n := binary.BigEndian.Uint64(bytesOf(kept[i])); n >= popular {
				t.Fatalf("of %d, block %d is in place %d, want the popular ones first", most, n, i)
			}
		}
	}
	cancel()
	callers.Wait()
}

func bytesOf(b schema.Selector) []byte { h := b.Hash(); return h[:8] }

func TestKeptAfterStop(t *testing.T) {
	p, err := New(Config{Source: &script{}})
	if err != nil {
		t.Fatal(err)
	}
	stop(t, p)
	if kept, err := p.Kept(10); err == nil {
		t.Errorf("a pool that has stopped lists %d blocks", len(kept))
	}
}

func TestWarmStopsWhenFull(t *testing.T) {
	src := &script{block: one}
	p := newPool(t, Config{Source: src, Shards: 2, CacheBytes: 4 << 20})
	var blocks []schema.Selector
	for n := range 5000 {
		blocks = append(blocks, hashed(n))
	}
	if rest := p.Warm(t.Context(), blocks); rest != nil {
		t.Errorf("%d blocks are left", len(rest))
	}
	if got := src.asked.Load(); got < 1000 || got > 2500 {
		t.Errorf("the source was asked for %d blocks, there is room for about 1,900", got)
	}
	// What is worth most was first to come and must not be first to go.
	for n := range 100 {
		lookup(p, schema.Question{Block: hashed(n)}, time.Time{})
	}
	if hits := p.Figures().Lookups["hit"]; hits != 100 {
		t.Errorf("%d of the first 100 blocks are in the cache", hits)
	}
}

// TestWarmPauses has a source that fails for a while, for good for one block, and cannot
// be asked for longer.
func TestWarmPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		src := &moody{begin: began.Add(time.Minute), script: script{block: func(_ context.Context, s schema.Selector) (upstream.Block, bool, error) {
			switch {
			case time.Since(began) < time.Minute+10*time.Second:
				return upstream.Block{}, false, upstream.ErrUnreachable
			case s == hashed(1500):
				return upstream.Block{}, false, upstream.ErrPruned
			}
			time.Sleep(20 * time.Millisecond)
			return oneUncle(7), true, nil
		}}}
		p := newPool(t, Config{Source: src, Shards: 1})
		var blocks []schema.Selector
		for n := range 2000 {
			blocks = append(blocks, hashed(n))
		}
		if rest := p.Warm(t.Context(), blocks); rest != nil {
			t.Errorf("%d blocks are left", len(rest))
		}
		synctest.Wait()
		if took := time.Since(began); took < 70*time.Second || took > 85*time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Minute)
		if kept := p.Figures().CacheEntries; kept != 2000-1 {
			t.Errorf("%d blocks are kept", kept)
		}
	})
}

// moody is a source that is not ready before a time.
type moody struct {
	script
	begin time.Time
}

func (m *moody) Ready() error {
	if time.Now().Before(m.begin) {
		return upstream.ErrUnreachable
	}
	return nil
}

func TestWarmIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, Config{Source: &script{block: hang}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var blocks []schema.Selector
		for n := range 100 {
			blocks = append(blocks, hashed(n))
		}
		rest := p.Warm(ctx, append(blocks, blocks...))
		for _, b := range blocks {
			if !slices.Contains(rest, b) {
				t.Errorf("%v is not left", b)
			}
		}
	})
}

func TestRanking(t *testing.T) {
	r := ranking{most: 3}
	for i, worth := range []int{0, 2, 0, 5, 2, 0, 1, 7} {
		r.add(hashed(i), worth)
	}
	if got, want := r.blocks(), []schema.Selector{hashed(7), hashed(3), hashed(1)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	all := ranking{most: 100}
	seen := map[schema.Selector]bool{}
	for i := range 50 {
		all.add(hashed(i), i%8)
		seen[hashed(i)] = true
	}
	for _, b := range all.blocks() {
		delete(seen, b)
	}
	if len(seen) > 0 {
		t.Errorf("missing: %v", slices.Collect(maps.Keys(seen)))
	}
}
