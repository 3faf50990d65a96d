package workers

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		src := &script{block: func(_ context.Context, s schema.Selector) (upstream.Block, bool, error) {
			<-release
			if s == schema.Number(13) {
				panic("a fault in the source")
			}
			return oneUncle(7), true, nil
		}}
		p := newPool(t, Config{Source: src, Shards: 1})
		var answered [12]atomic.Int64
		for i := range answered {
			p.Resolve(schema.Question{Block: schema.Number(uint64(i / 6))}, time.Time{}, schema.ReceiverFunc(func(schema.Answer) {
				answered[i].Add(1)
				if i == 2 || i == 8 {
					panic("a fault in a receiver")
				}
			}))
		}
		source := make(chan schema.Answer, 1)
		p.Resolve(schema.Question{Block: schema.Number(13)}, time.Time{}, schema.ReceiverFunc(func(a schema.Answer) { source <- a }))
		synctest.Wait()
		close(release)
		time.Sleep(time.Minute)
		for i := range answered {
			if got := answered[i].Load(); got != 1 {
				t.Errorf("receiver %d was called %d times", i, got)
			}
		}
		if a := <-source; a.Err == nil || a.Err.Code != schema.Internal {
			t.Errorf("after a panic of the source: %s %v, want Internal", a.Result, a.Err)
		}
		if a := lookup(p, schema.Question{Block: schema.Number(99)}, time.Time{}); a.Err != nil {
			t.Errorf("after the crash: %v", a.Err)
		}
		if got := p.slots[0].fetches.Load(); got != 0 {
			t.Errorf("%d fetches are counted when none is left", got)
		}
	})
}

func TestStopWaitsForAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		source time.Duration
		bound  time.Duration
		want   schema.Code
	}{
		{"the source answers in time", 2 * time.Second, 5 * time.Second, schema.OK},
		{"the source takes too long", 9 * time.Second, 5 * time.Second, schema.Draining},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := New(Config{Source: &script{block: func(ctx context.Context, s schema.Selector) (upstream.Block, bool, error) {
					select {
					case <-time.After(tt.source):
						return oneUncle(7), true, nil
					case <-ctx.Done():
						return hang(ctx, s)
					}
				}}})
				if err != nil {
					t.Fatal(err)
				}
				got := make(chan schema.Code, 2)
				to := schema.ReceiverFunc(func(a schema.Answer) {
					if a.Err != nil {
						got <- a.Err.Code
						return
					}
					got <- schema.OK
				})
				p.Resolve(schema.Question{Block: schema.Number(5)}, time.Time{}, to)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(context.Background(), tt.bound)
				defer cancel()
				start := time.Now()
				if err := p.Stop(ctx); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took > tt.bound {
					t.Errorf("Stop took %v", took)
				}
				if code := <-got; code != tt.want {
					t.Errorf("who waited was told %v, want %v", code, tt.want)
				}
				p.Resolve(schema.Question{Block: schema.Number(6)}, time.Time{}, to)
				if code := <-got; code != schema.Draining {
					t.Errorf("who came later was told %v, want draining", code)
				}
			})
		})
	}
}

// TestExactlyOnce asks from many goroutines of a source that is slow, fails, panics
// and hangs, through receivers that now and then panic, and stops in the middle.
func TestExactlyOnce(t *testing.T) {
	src := &script{block: func(ctx context.Context, s schema.Selector) (upstream.Block, bool, error) {
		switch rand.IntN(20) {
		case 0:
			return hang(ctx, s)
		case 1:
			return upstream.Block{}, false, upstream.ErrPruned
		case 2:
			panic("a fault in the source")
		case 3:
			return upstream.Block{}, false, nil
		}
		return oneUncle(7), true, nil
	}}
	p, err := New(Config{Source: src, Shards: 3, CacheBytes: 1 << 14, MaxWaiting: 90, MaxFetches: 30, Mailbox: 64})
	if err != nil {
		t.Fatal(err)
	}
	const askers, each = 8, 3000
	counts := make([]atomic.Int32, askers*each)
	var all sync.WaitGroup
	for g := range askers {
		all.Go(func() {
			for i := range each {
				at := g*each + i
				deadline := time.Now().Add(time.Duration(rand.IntN(30)-1) * time.Millisecond)
				resolve(p, schema.Question{Block: schema.Number(rand.Uint64N(200)), Index: uint64(i % 3)}, deadline, func() {
					counts[at].Add(1)
					if at%2500 == 7 {
						panic("a fault in a receiver")
					}
				})
				if at == askers*each/2 {
					all.Go(func() { stopSoon(p) })
				}
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_ = p.Stop(ctx) // what it says about discarded messages depends on the moment
	for i := range counts {
		if got := counts[i].Load(); got != 1 {
			t.Fatalf("receiver %d was called %d times", i, got)
		}
	}
}

// resolve asks, and stands a receiver that panics on its own stack.
func resolve(p *Pool, q schema.Question, deadline time.Time, to func()) {
	defer func() { _ = recover() }()
	p.Resolve(q, deadline, schema.ReceiverFunc(func(schema.Answer) { to() }))
}

func stopSoon(p *Pool) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_ = p.Stop(ctx) // cut off on purpose
}
