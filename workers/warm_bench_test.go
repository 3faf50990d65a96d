package workers

import (
	"context"
	"math"
	"math/rand/v2"
	"sort"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// BenchmarkWarmStart tells how long a worker takes to as many hits as the one before it
// had, less two in a hundred, when it starts empty and when it starts from what that one
// kept. Callers ask 4,000 times a second by Zipf's law with exponent 1 for 400,000 blocks,
// of which the cache has room for a twentieth; the node takes 20 ms and 64 lookups at a
// time. Once is enough: go test -run '^$' -bench WarmStart -benchtime 1x ./workers.
func BenchmarkWarmStart(b *testing.B) {
	const (
		keys, room    = 400_000, 20_000
		rate          = 4000 // a second
		window        = time.Second
		patience      = 4 * time.Minute
		bytesPerBlock = 2000
	)
	var upTo []float64
	sum := 0.0
	for rank := range keys {
		sum += math.Pow(float64(rank+1), -1)
		upTo = append(upTo, sum)
	}
	r := rand.New(rand.NewPCG(1, 2))
	next := func() schema.Selector { return hashed(sort.SearchFloat64s(upTo, r.Float64()*sum)) }
	var slow atomic.Bool
	places := make(chan struct{}, 64)
	src := &script{block: func(ctx context.Context, s schema.Selector) (upstream.Block, bool, error) {
		if slow.Load() {
			places <- struct{}{}
			defer func() { <-places }()
			time.Sleep(20 * time.Millisecond)
		}
		return one(ctx, s)
	}}
	ignore := schema.ReceiverFunc(func(schema.Answer) {})
	// until asks until so many of the asks of a window are hits.
	until := func(p *Pool, ratio float64) time.Duration {
		began := time.Now()
		for hits, asks := p.Figures().Lookups["hit"], uint64(0); time.Since(began) < patience; {
			end := time.Now().Add(window)
			for tick := time.NewTicker(5 * time.Millisecond); time.Now().Before(end); <-tick.C {
				for range rate / 200 {
					p.Resolve(schema.Question{Block: next()}, time.Time{}, ignore)
					asks++
				}
			}
			now := p.Figures().Lookups["hit"]
			if float64(now-hits) >= ratio*float64(asks) {
				return time.Since(began)
			}
			hits, asks = now, 0
		}
		return patience
	}
	for b.Loop() {
		slow.Store(false)
		old := newPool(b, Config{Source: src, CacheBytes: room * bytesPerBlock})
		for range 4 * keys {
			lookup(old, schema.Question{Block: next()}, time.Time{})
		}
		before := old.Figures().Lookups["hit"]
		for range keys {
			lookup(old, schema.Question{Block: next()}, time.Time{})
		}
		ratio := float64(old.Figures().Lookups["hit"]-before) / keys
		kept, err := old.Kept(1 << 18)
		if err != nil {
			b.Fatal(err)
		}
		slow.Store(true)
		src.asked.Store(0)
		empty := newPool(b, Config{Source: src, CacheBytes: room * bytesPerBlock})
		cold := until(empty, ratio-0.02)
		b.Logf("%.1f %% hits before, %d blocks kept, %d bytes; empty: %v, asked for %d blocks", 100*ratio, len(kept), old.Figures().CacheBytes, cold, src.asked.Swap(0))

		p := newPool(b, Config{Source: src, CacheBytes: room * bytesPerBlock})
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		go func() { p.Warm(ctx, kept); close(done) }()
		warm := until(p, ratio-0.02)
		cancel()
		<-done
		b.Logf("from a snapshot: %v, asked for %d blocks", warm, src.asked.Swap(0))
		b.ReportMetric(cold.Seconds(), "s-empty")
		b.ReportMetric(warm.Seconds(), "s-snapshot")
		b.ReportMetric(cold.Seconds()/warm.Seconds(), "times")
	}
}
