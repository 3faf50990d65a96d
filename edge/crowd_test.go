package edge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

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
	server, err := bus.NewServer(bus.ServerConfig{Links: []*bus.Link{dial("worker")}, Network: "mainnet", Resolver: r, MaxInFlight: capacity, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Leave(context.Background()); err != nil {
			t.Error(err)
		}
	})
	client, err := bus.NewClient(bus.ClientConfig{Links: []*bus.Link{dial("edge")}, Network: "mainnet"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// batchFrom is a batch of n calls for the 500 blocks from first on.
func batchFrom(first, n int) (request, reply string) {
	var in, out []string
	for i := range n {
		in, out = append(in, lookup(i, first+i%500)), append(out, answer(i, first+i%500))
	}
	return "[" + strings.Join(in, ",") + "]", "[" + strings.Join(out, ",") + "]"
}

// caller is a client with a connection of its own. What goes wrong is returned in the
// place of an answer.
type caller struct {
	key    string
	conn   net.Conn
	reader *bufio.Reader
	ws     *websocket.Conn // nil for HTTP
}

func (f *fixture) caller(t *testing.T, key, addr string, webSocket bool) *caller {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	if webSocket {
		transport := &http.Transport{DialContext: dialer.DialContext}
		ws, _, err := websocket.Dial(t.Context(), fmt.Sprintf("ws://%s/ws/v3/%s", f.HTTP(), key), &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		ws.SetReadLimit(-1)
		t.Cleanup(func() { ws.CloseNow(); transport.CloseIdleConnections() })
		return &caller{ws: ws}
	}
	conn, err := dialer.DialContext(t.Context(), "tcp", f.HTTP().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &caller{key: key, conn: conn, reader: bufio.NewReader(conn)}
}

func (c *caller) send(message string) {
	if c.ws != nil {
		_ = c.ws.Write(context.Background(), websocket.MessageText, []byte(message))
		return
	}
	_, _ = io.WriteString(c.conn, post(c.key, message)) // reading tells what went wrong
}

func (c *caller) receive() string {
	if c.ws != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, message, err := c.ws.Read(ctx)
		if err != nil {
			return err.Error()
		}
		return string(message)
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return err.Error()
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

func (c *caller) ask(message string) string {
	c.send(message)
	return c.receive()
}

// counted is the sum of a metric over its labels.
func counted(t *testing.T, from prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// gate answers what is asked about blocks from 500 on at once, and holds the rest.
type gate struct{ open, held *schematest.Fixed }

func (g *gate) Resolve(q schema.Question, deadline time.Time, to schema.Receiver) {
	if q.Block.Number() >= 500 {
		g.open.Resolve(q, deadline, to)
	} else {
		g.held.Resolve(q, deadline, to)
	}
}

// TestCrowd has 50 connections send batches of 1000 calls of which none is answered,
// and asks beside them for things that are answered: all of that is answered right
// before any batch of the crowd is, though the crowd has asked for fifty times what the
// worker can hold. In the end the crowd has its answers, too.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const hogs, honest, rounds, capacity = 50, 20, 20, 1024
	calls := 1000
	if raceEnabled { // which makes each cost ten times as much; still ten times what there is room for
		calls = 100
	}
	for _, tt := range []struct {
		name      string
		keys      int
		addrs     int
		webSocket bool
	}{
		{"HTTP, one key, one address", 1, 1, false},
		{"HTTP, many keys, one address", hogs, 1, false},
		{"HTTP, many keys, 16 addresses", hogs, 16, false},
		{"WebSocket, one key, 16 addresses", 1, 16, true},
		{"WebSocket, many keys, one address", hogs, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.addrs > 1 && runtime.GOOS != "linux" {
				t.Skip("the loopback interface has one address here")
			}
			g := &gate{schematest.NewFixed(uncles()), schematest.NewFixed(uncles())}
			g.held.Hold()
			client, registry := overBus(t, g, capacity), prometheus.NewRegistry()
			f := start(t, func(c *edge.Config) {
				c.Resolver, c.Limits.InFlightTotal, c.Timeouts.Lookup = client, capacity/2, time.Minute
				c.Registerer = registry
			})
			t.Cleanup(g.held.Stop)
			entries := map[string]*keys.Entry{}
			key := func(name string) string {
				if entries[name] == nil {
					var err error
					if entries[name], err = f.keys.AddStatic(name); err != nil {
						t.Fatal(err)
					}
				}
				return name
			}
			batch, want := batchFrom(0, calls)
			crowd := make([]*caller, hogs)
			for i := range crowd {
				crowd[i] = f.caller(t, key(fmt.Sprintf("hog-key-%d", i%tt.keys)), fmt.Sprintf("127.0.0.%d", 1+i%tt.addrs), tt.webSocket)
				crowd[i].send(batch)
			}
			eventually(t, "all of the crowd", func() bool {
				return counted(t, registry, "ommer_edge_calls_total") == float64(hogs*calls) && len(g.held.Waiting()) >= hogs
			})

			good := key("honest-key")
			var wg sync.WaitGroup
			for i := range honest {
				c := f.caller(t, good, "127.0.0.1", i%2 == 0)
				wg.Go(func() {
					for n := range rounds {
						if got, want := c.ask(lookup(n, 500+n)), answer(n, 500+n); got != want {
							t.Errorf("honest client %d, request %d: got %.200s", i, n, got)
							return
						}
					}
					if in, out := batchFrom(500, 100); c.ask(in) != out {
						t.Errorf("honest client %d: a batch has another answer", i)
					}
				})
			}
			wg.Wait()
			if n := len(g.held.Waiting()); n < hogs {
				t.Errorf("the crowd has %d asked: it was answered before the others", n)
			}

			g.held.Release()
			for i, c := range crowd {
				if got := c.receive(); got != want {
					t.Errorf("hog %d: its batch has another answer: %.200s", i, got)
				}
			}
			for name, e := range entries {
				eventually(t, "the end of the lookups of "+name, func() bool { return e.Lookups.Load() == 0 })
			}
		})
	}
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
