package workers

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
	"github.com/ommer/ommer/workers/upstream"
)

// spin takes the processor for some time.
func spin(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

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

// BenchmarkOffered asks a worker over a NATS server for less than it can do and for more,
// on a schedule, and shows how many answers there are per second, relative to what it
// can do, and how late they are.
func BenchmarkOffered(b *testing.B) {
	for _, c := range []struct {
		name   string
		shard  time.Duration // for an answer
		source time.Duration // of the processor, for a block
		blocks uint64        // that are asked for, 0 for a new one each time
	}{
		{"slow-shards", 200 * time.Microsecond, 0, 1000},
		{"busy-processor", 0, 300 * time.Microsecond, 0},
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
				p := newPool(b, Config{MaxWait: wait, Source: &script{
					block: func(context.Context, schema.Selector) (upstream.Block, bool, error) {
						spin(c.source)
						return oneUncle(7), true, nil
					},
				}})
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
					n := fresh.Add(1)
					if c.blocks > 0 {
						n %= c.blocks
					}
					return schema.Question{Block: schema.BlockHash(schema.Hash{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})}
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
