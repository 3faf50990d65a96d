package workers

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
	"github.com/ommer/ommer/workers/upstream"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// slowed is a Pool whose shards take some time for each result.
type slowed struct {
	*Pool
	work time.Duration
}

func (s slowed) Resolve(q schema.Question, deadline time.Time, to schema.Receiver) {
	s.Pool.Resolve(q, deadline, schema.ReceiverFunc(func(a schema.Answer) { // on the shard
		if a.Err == nil && s.work > 0 {
			time.Sleep(s.work)
		}
		to.Answered(a)
	}))
}

// nodeSource asks a node that serves blocks over HTTP, in this process, and takes some time
// for each request.
func nodeSource(b *testing.B, terms string, delay time.Duration, wait time.Duration) Source {
	node := upstreamtest.Start(b, longChain())
	if delay > 0 {
		node.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
			time.Sleep(delay)
			node.ServeHTTP(w, r)
		})
	}
	s, err := upstream.New(upstream.Config{URLs: []string{node.URL + terms}, MaxWait: wait})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

var longChain = sync.OnceValue(func() upstreamtest.Chain { return upstreamtest.Generate(2000, 2000, "main") })

// BenchmarkOffered asks a worker over a NATS server for less than it can do and for more,
// on a schedule, and shows how many answers there are per second, relative to what it
// can do, and how late they are.
func BenchmarkOffered(b *testing.B) {
	cached := func(*testing.B, time.Duration) Source {
		return &script{block: func(context.Context, schema.Selector) (upstream.Block, bool, error) { return oneUncle(7), true, nil }}
	}
	for _, c := range []struct {
		name   string
		shard  time.Duration // for an answer
		cache  int64
		source func(b *testing.B, wait time.Duration) Source
	}{
		{"slow-shards", 2 * time.Millisecond, 0, cached},
		// A node that computes, on the same processors; nothing is kept.
		{"busy-processor", 0, -1, func(b *testing.B, wait time.Duration) Source { return nodeSource(b, "", 0, wait) }},
		// 16 blocks each 10 ms.
		{"slow-node", 0, -1, func(b *testing.B, wait time.Duration) Source {
			return nodeSource(b, "#in-flight=2&batch=8", 10*time.Millisecond, wait)
		}},
	} {
		for _, wait := range []time.Duration{-1, 0} {
			bound := "bounded"
			if wait < 0 {
				bound = "unbounded"
			}
			b.Run(c.name+"/"+bound, func(b *testing.B) {
				nats, err := embedded.New(embedded.Config{})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(nats.Close)
				dial := func(name string) []*bus.Link {
					l, err := bus.Dial(bus.LinkConfig{Name: name, URLs: []string{nats.URL()}})
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(l.Close)
					return []*bus.Link{l}
				}
				p := newPool(b, Config{MaxWait: wait, CacheBytes: c.cache, Source: c.source(b, wait)})
				s, err := bus.NewServer(bus.ServerConfig{Links: dial("w"), Network: "n", Resolver: slowed{p, c.shard}})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() {
					if err := s.Leave(context.Background()); err != nil {
						b.Error(err)
					}
				})
				client, err := bus.NewClient(bus.ClientConfig{Links: dial("e"), Network: "n"})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(client.Close)
				var fresh atomic.Uint64
				question := func(int) schema.Question {
					b := longChain()[fresh.Add(1)%uint64(len(longChain()))]
					return schema.Question{Block: schema.BlockHash(schema.Hash(b.Hash()))}
				}
				for b.Loop() {
					capacity := schematest.Capacity(client, question, 64, time.Second)
					for _, times := range []float64{0.7, 1.5} {
						o := schematest.Offer(client, question, times*capacity, 2*time.Second)
						b.Logf("%.1f of %.0f/s: %v", times, capacity, o)
						b.ReportMetric(o.Goodput/capacity, fmt.Sprintf("goodput@%.1f", times))
						b.ReportMetric(float64(o.P99.Microseconds())/1000, fmt.Sprintf("p99-ms@%.1f", times))
					}
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
