package workers

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// BenchmarkUpstreamCalls shows how many calls a worker makes to its node for 1000 lookups
// of 2,000 blocks, by number and by hash, with either index: 8,000 questions, of which
// 100,000 are asked, 64 at a time. A proxy without a cache makes 1000, one that keeps
// each answer for good makes those of the metric distinct.
func BenchmarkUpstreamCalls(b *testing.B) {
	const lookups, inFlight = 100_000, 64
	chain := longChain()
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 1, uint64(4*len(chain)-1))
	order := random.Perm(4 * len(chain))
	for name, next := range map[string]func() int{
		"uniform": func() int { return random.IntN(4 * len(chain)) },
		"zipf":    func() int { return order[zipf.Uint64()] },
	} {
		b.Run(name, func(b *testing.B) {
			node := upstreamtest.Start(b, chain)
			node.SetFinalized(int64(len(chain) - 1))
			reg := prometheus.NewRegistry()
			s, err := upstream.New(upstream.Config{URLs: []string{node.URL}, MaxWait: -1, PollInterval: time.Hour, Registerer: reg})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { _ = s.Run(ctx) }) // always nil
			b.Cleanup(func() { cancel(); running.Wait() })
			for _, ok := s.Finalized(); !ok; _, ok = s.Finalized() {
				runtime.Gosched()
			}
			p := newPool(b, Config{Source: s, MaxWait: -1})
			free := make(chan struct{}, inFlight)
			distinct := map[int]bool{}
			b.ResetTimer()
			for b.Loop() {
				for range lookups {
					k := next()
					distinct[k] = true
					block := chain[k/4]
					q := schema.Question{Block: schema.Number(block.NumberU64()), Index: uint64(k & 1)}
					if k&2 > 0 {
						q.Block = schema.BlockHash(schema.Hash(block.Hash()))
					}
					free <- struct{}{}
					p.Resolve(q, time.Time{}, schema.ReceiverFunc(func(a schema.Answer) {
						if a.Err != nil {
							b.Error(a.Err)
						}
						<-free
					}))
				}
				for range inFlight {
					free <- struct{}{}
				}
			}
			b.ReportMetric(total(b, reg, "ommer_upstream_calls_total")*1000/lookups, "calls/1000")
			b.ReportMetric(total(b, reg, "ommer_upstream_requests_total")*1000/lookups, "requests/1000")
			b.ReportMetric(float64(len(distinct))*1000/lookups, "distinct/1000")
		})
	}
}

// total adds up a counter over its labels.
func total(b *testing.B, reg *prometheus.Registry, name string) (sum float64) {
	families, err := reg.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name && f.GetType() == dto.MetricType_COUNTER {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
