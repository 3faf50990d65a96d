package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
)

// overBus starts a worker that answers from r and has capacity for so many questions,
// and returns what asks it over NATS.
func overBus(t testing.TB, r schema.Resolver, capacity int) *bus.Client {
	t.Helper()
	nats, err := embedded.New(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nats.Close)
	dial := func(name string) *bus.Link {
		l, err := bus.Dial(bus.LinkConfig{Name: name, URLs: []string{nats.URL()}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	server, err := bus.NewServer(bus.ServerConfig{Link: dial("worker"), Network: "mainnet", Resolver: r, MaxInFlight: capacity})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Leave(t.Context()); err != nil {
			t.Log(err)
		}
	})
	client, err := bus.NewClient(bus.ClientConfig{Links: []*bus.Link{dial("edge")}, Network: "mainnet"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// batchFrom is a batch of n calls for the blocks from first on.
func batchFrom(first, n int) (request, reply string) {
	var in, out []string
	for i := range n {
		in, out = append(in, lookup(i, first+i)), append(out, answer(i, first+i))
	}
	return "[" + strings.Join(in, ",") + "]", "[" + strings.Join(out, ",") + "]"
}

// BenchmarkCrowd is a request beside 50 connections that send batches of 1000 calls
// and read nothing. The worst of them and the refused ones are what a crowd can do to
// others.
func BenchmarkCrowd(b *testing.B) {
	const hogs, requests = 50, 2000
	for _, crowd := range []int{0, hogs} {
		b.Run(fmt.Sprintf("hogs=%d", crowd), func(b *testing.B) {
			known := map[schema.Question]string{}
			for n := range uint64(1001) {
				known[schema.Question{Block: schema.Number(n)}] = `"` + strings.Repeat("u", 1400) + `"`
			}
			client := overBus(b, schematest.NewFixed(known), bus.DefaultMaxInFlight)
			f := start(b, func(c *edge.Config) { c.Resolver = client })
			const honest = "honest-key-01"
			if _, err := f.keys.AddStatic(honest); err != nil {
				b.Fatal(err)
			}
			batch, _ := batchFrom(0, 1000)
			hog := strings.Repeat(post(testKey, batch), 20)
			c := f.dial(b, false)
			r, request := bufio.NewReader(c), post(honest, lookup(1, 7))
			var took []time.Duration
			refused := 0
			for b.Loop() {
				took, refused = took[:0], 0
				var wg sync.WaitGroup
				var open []net.Conn
				for range crowd {
					h := f.dial(b, false)
					open = append(open, h)
					wg.Go(func() { io.WriteString(h, hog) }) // ends with the connection
				}
				for range requests {
					began := time.Now()
					io.WriteString(c, request)
					resp, body := response(b, r)
					took = append(took, time.Since(began))
					if resp.StatusCode != 200 || !strings.Contains(body, `"result"`) {
						refused++
					}
				}
				for _, h := range open {
					h.Close()
				}
				wg.Wait()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(float64(took[len(took)-1].Microseconds()), "worst-us")
			b.ReportMetric(float64(refused), "refused")
		})
	}
}

var _ = keys.New
