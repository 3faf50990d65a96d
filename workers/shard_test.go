package workers

import (
	"context"
	"errors"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/uncle"
	"github.com/ommer/ommer/workers/upstream"
)

// script is a source that does what a test says, and counts.
type script struct {
	block func(ctx context.Context, s schema.Selector) (upstream.Block, bool, error)
	asked atomic.Int64
}

func (s *script) Block(ctx context.Context, sel schema.Selector) (upstream.Block, bool, error) {
	s.asked.Add(1)
	if s.block == nil {
		return upstream.Block{}, false, nil
	}
	return s.block(ctx, sel)
}

func (s *script) Ready() error { return nil }

// oneUncle is a block with one uncle, of the given height.
func oneUncle(n int64) upstream.Block {
	return upstream.Block{
		Header: &types.Header{Number: big.NewInt(n + 1)},
		Uncles: []*types.Header{{Number: big.NewInt(n), Difficulty: big.NewInt(1)}},
	}
}

func TestFreshness(t *testing.T) {
	final := func(b upstream.Block) upstream.Block { b.Final = true; return b }
	hash := schema.BlockHash(schema.Hash{1})
	for _, tt := range []struct {
		name  string
		block schema.Selector
		found bool
		final bool
		keep  time.Duration // 0: not at all, -1: for good
	}{
		{"final number", schema.Number(5), true, true, -1},
		{"number", schema.Number(5), true, false, Fresh},
		{"no such number", schema.Number(5), false, false, Fresh},
		{"hash", hash, true, false, -1},
		{"no such hash", hash, false, false, Fresh},
		{"latest", schema.Tagged(schema.Latest), true, false, 0},
		{"finalized", schema.Tagged(schema.Finalized), true, true, 0},
		{"pending, none", schema.Tagged(schema.Pending), false, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const slow = 300 * time.Millisecond
				src := &script{}
				src.block = func(context.Context, schema.Selector) (upstream.Block, bool, error) {
					time.Sleep(slow) // the answer is as old as the question
					b := oneUncle(src.asked.Load())
					if tt.final {
						b = final(b)
					}
					if !tt.found {
						b = upstream.Block{}
					}
					return b, tt.found, nil
				}
				p := newPool(t, Config{Source: src})
				ask := func() {
					t.Helper()
					a := lookup(p, schema.Question{Block: tt.block}, time.Time{})
					if a.Err != nil || (string(a.Result) == "null") == tt.found {
						t.Fatalf("%.99s %v", a.Result, a.Err)
					}
				}
				wantAsked := func(n int64) {
					t.Helper()
					if got := src.asked.Load(); got != n {
						t.Errorf("the source was asked %d times, want %d", got, n)
					}
				}
				ask()
				wantAsked(1)
				switch tt.keep {
				case 0:
					ask()
					wantAsked(2)
				case -1:
					time.Sleep(240 * time.Hour)
					ask()
					wantAsked(1)
				default:
					time.Sleep(tt.keep - slow - 1)
					ask()
					wantAsked(1)
					time.Sleep(time.Nanosecond)
					ask()
					wantAsked(2)
				}
			})
		})
	}
}

// TestResults asks for all indexes of one block with one question to the source.
func TestResults(t *testing.T) {
	block := oneUncle(7)
	src := &script{block: func(context.Context, schema.Selector) (upstream.Block, bool, error) { return block, true, nil }}
	p := newPool(t, Config{Source: src})
	for index, want := range map[uint64]string{0: string(uncle.Append(nil, block.Uncles[0])), 1: "null", 2: "null", 1<<64 - 1: "null"} {
		a := lookup(p, schema.Question{Block: schema.BlockHash(schema.Hash{1}), Index: index}, time.Time{})
		if a.Err != nil || string(a.Result) != want {
			t.Errorf("index %d: %.99s %v, want %.99s", index, a.Result, a.Err, want)
		}
	}
	if got := src.asked.Load(); got != 1 {
		t.Errorf("the source was asked %d times, want once", got)
	}
}

func TestCoalescing(t *testing.T) {
	for _, b := range []schema.Selector{schema.Number(5), schema.BlockHash(schema.Hash{1}), schema.Tagged(schema.Latest)} {
		t.Run(b.String()[:3], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := &script{block: func(context.Context, schema.Selector) (upstream.Block, bool, error) {
					time.Sleep(time.Second)
					return oneUncle(7), true, nil
				}}
				reg := prometheus.NewRegistry()
				p := newPool(t, Config{Source: src, Registerer: reg})
				var all sync.WaitGroup
				for i := range 100 {
					all.Go(func() {
						if a := lookup(p, schema.Question{Block: b, Index: uint64(i % 2)}, time.Time{}); a.Err != nil || (string(a.Result) == "null") != (i%2 == 1) {
							t.Errorf("%d: %.99s %v", i, a.Result, a.Err)
						}
					})
				}
				all.Wait()
				if got := src.asked.Load(); got != 1 {
					t.Errorf("the source was asked %d times, want once", got)
				}
				count := func(s source) (n uint64) {
					for _, slot := range p.slots {
						n += slot.count.lookups[s].Load()
					}
					return n
				}
				if miss, shared := count(sourceMiss), count(sourceCoalesced); miss != 1 || shared != 99 {
					t.Errorf("counted %d misses and %d coalesced, want 1 and 99", miss, shared)
				}
				if n, err := testutil.GatherAndCount(reg, "ommer_workers_lookups_total"); n != int(numSources) || err != nil {
					t.Errorf("%d series, %v", n, err)
				}
			})
		})
	}
}

// hang is a source that gives up with its context.
func hang(ctx context.Context, _ schema.Selector) (upstream.Block, bool, error) {
	<-ctx.Done()
	return upstream.Block{}, false, errors.Join(upstream.ErrUnreachable, ctx.Err())
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, Config{Source: &script{block: hang}, Timeout: 4 * time.Second})
		start := time.Now()
		var all sync.WaitGroup
		for i, d := range []time.Duration{-time.Second, 0, 1, time.Millisecond, 15 * time.Millisecond, 700 * time.Millisecond, 3 * time.Second, 30 * time.Second} {
			all.Go(func() {
				deadline, want := start.Add(d), max(d, 0)
				if i == 1 {
					deadline, want = time.Time{}, 4*time.Second // the default
				}
				a := lookup(p, schema.Question{Block: schema.Number(5)}, deadline)
				took := time.Since(start)
				if a.Err == nil || a.Err.Code != schema.Timeout {
					t.Errorf("within %v: %.99s %v, want a time-out", d, a.Result, a.Err)
				}
				if took < want || took > want+2*sweepInterval {
					t.Errorf("within %v: told after %v", want, took)
				}
			})
		}
		all.Wait()
	})
}

// TestLaterDeadlineIsKept lets one in no hurry join the fetch of one in a hurry.
func TestLaterDeadlineIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{block: func(ctx context.Context, s schema.Selector) (upstream.Block, bool, error) {
			select {
			case <-time.After(5 * time.Second):
				return oneUncle(7), true, nil
			case <-ctx.Done():
				return hang(ctx, s)
			}
		}}
		p := newPool(t, Config{Source: src})
		var all sync.WaitGroup
		for _, d := range []time.Duration{2 * time.Second, 10 * time.Second} {
			all.Go(func() {
				a := lookup(p, schema.Question{Block: schema.Number(5)}, time.Now().Add(d))
				if failed := a.Err != nil; failed != (d < 5*time.Second) {
					t.Errorf("within %v: %.99s %v", d, a.Result, a.Err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if got := src.asked.Load(); got != 2 {
			t.Errorf("the source was asked %d times, want 2", got)
		}
	})
}

// TestFetchOutlivesHurry checks that a fetch which nobody waits for any more still
// fills the cache.
func TestFetchOutlivesHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{block: func(ctx context.Context, s schema.Selector) (upstream.Block, bool, error) {
			select {
			case <-time.After(500 * time.Millisecond):
				return oneUncle(7), true, nil
			case <-ctx.Done():
				return hang(ctx, s)
			}
		}}
		p := newPool(t, Config{Source: src})
		q := schema.Question{Block: schema.BlockHash(schema.Hash{1})}
		if a := lookup(p, q, time.Now().Add(50*time.Millisecond)); a.Err == nil || a.Err.Code != schema.Timeout {
			t.Fatalf("%.99s %v, want a time-out", a.Result, a.Err)
		}
		time.Sleep(500 * time.Millisecond)
		if a := lookup(p, q, time.Now().Add(time.Millisecond)); a.Err != nil {
			t.Errorf("not in the cache: %v", a.Err)
		}
	})
}

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cfg   Config
		block func(i int) schema.Selector
		want  int // that wait
	}{
		{"waiting", Config{MaxWaiting: 10}, func(int) schema.Selector { return schema.Number(1) }, 10},
		{"fetches", Config{MaxFetches: 7}, func(i int) schema.Selector { return schema.Number(uint64(i)) }, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.cfg.Source, tt.cfg.Shards = &script{block: hang}, 1
				p := newPool(t, tt.cfg)
				var overloaded, late atomic.Int64
				for i := range 30 {
					p.Resolve(schema.Question{Block: tt.block(i)}, time.Now().Add(2*time.Second), schema.ReceiverFunc(func(a schema.Answer) {
						switch {
						case a.Err != nil && a.Err.Code == schema.Overloaded:
							overloaded.Add(1)
						case a.Err != nil && a.Err.Code == schema.Timeout:
							late.Add(1)
						}
					}))
				}
				synctest.Wait()
				if got := overloaded.Load(); got != int64(30-tt.want) {
					t.Errorf("%d refused at once, want %d", got, 30-tt.want)
				}
				time.Sleep(3 * time.Second)
				if got := late.Load(); got != int64(tt.want) {
					t.Errorf("%d timed out, want %d", got, tt.want)
				}
				if got := p.slots[0].fetches.Load(); got != 0 {
					t.Errorf("%d fetches are counted when none is left", got)
				}
			})
		})
	}
}

// TestMailboxFull holds the shard in a Receiver.
func TestMailboxFull(t *testing.T) {
	p := newPool(t, Config{Source: &script{}, Shards: 1, Mailbox: 5})
	q := schema.Question{Block: schema.Number(5)}
	entered, held := make(chan struct{}), make(chan struct{})
	p.Resolve(q, time.Time{}, schema.ReceiverFunc(func(schema.Answer) { close(entered); <-held }))
	<-entered
	answers := make(chan schema.Answer, 6)
	for range cap(answers) {
		p.Resolve(q, time.Time{}, schema.ReceiverFunc(func(a schema.Answer) { answers <- a }))
	}
	if a := <-answers; a.Err == nil || a.Err.Code != schema.Overloaded {
		t.Errorf("beyond the mailbox: %s %v, want Overloaded", a.Result, a.Err)
	}
	close(held)
	for range cap(answers) - 1 {
		if a := <-answers; a.Err != nil {
			t.Errorf("within the mailbox: %v", a.Err)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	src := &script{block: func(context.Context, schema.Selector) (upstream.Block, bool, error) {
		b := oneUncle(7)
		b.Header = nil // without it the block has no other name
		return b, true, nil
	}}
	const max = 1 << 20
	p := newPool(t, Config{Source: src, CacheBytes: max, Shards: 2})
	for i := range uint64(3000) {
		lookup(p, schema.Question{Block: schema.BlockHash(schema.Hash{byte(i), byte(i >> 8)})}, time.Time{})
		lookup(p, schema.Question{Block: schema.Number(i)}, time.Time{})
	}
	var bytes, entries int64
	var evicted uint64
	for _, s := range p.slots {
		bytes, entries, evicted = bytes+s.bytes.Load(), entries+s.entries.Load(), evicted+s.evicted.Load()
	}
	if bytes > max || bytes < max*9/10 || uint64(entries)+evicted != 6000 {
		t.Errorf("%d entries of %d bytes, %d evicted; want at most %d bytes", entries, bytes, evicted, max)
	}
}
