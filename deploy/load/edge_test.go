package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/deploy/load"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/edge/certs"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
	"github.com/ommer/ommer/schema/uncle"
)

const edgeKey = "a-key-that-nobody-may-see"

// service is an edge in this process over a fixed table: blocks 16 to 35 have an uncle
// each, whose parent is the block before, which has it as well by its hash.
type service struct {
	*edge.Node
	resolver *schematest.Fixed
	ca       []byte
}

func startEdge(t *testing.T, limits edge.Limits) *service {
	t.Helper()
	dir, err := keys.NewDirectory(keys.DirectoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = dir.AddStatic(edgeKey); err != nil {
		t.Fatal(err)
	}
	pair, err := certs.SelfSigned(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store, err := certs.New(certs.Config{Pairs: []certs.Pair{pair}})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(pair.Cert)
	if err != nil {
		t.Fatal(err)
	}
	known := map[schema.Question]string{}
	for n := range int64(20) {
		h := &types.Header{Number: big.NewInt(15 + n), Difficulty: big.NewInt(1), ParentHash: [32]byte{31: byte(n + 1)}}
		object := string(uncle.Append(nil, h))
		known[schema.Question{Block: schema.Number(uint64(16 + n))}] = object
		known[schema.Question{Block: schema.BlockHash(schema.Hash(h.ParentHash))}] = object
	}
	s := &service{resolver: schematest.NewFixed(known), ca: ca}
	s.Node, err = edge.New(edge.Config{
		HTTPS: "127.0.0.1:0", HTTP: "127.0.0.1:0", TLS: store.TLS(), Limits: limits,
		Keys: dir, Resolver: s.resolver, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		s.resolver.Stop()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		dir.Close()
	})
	return s
}

func (s *service) endpoint(secure, ws bool) load.Endpoint {
	e := load.Endpoint{Addr: s.HTTP().String(), Path: "/v3/" + edgeKey, WS: ws}
	if secure {
		e.Addr, e.TLS, e.CA = s.HTTPS().String(), true, s.ca
	}
	if ws {
		e.Path = "/ws" + e.Path
	}
	return e
}

// uncles are questions that have an uncle for an answer.
func (s *service) uncles(t *testing.T) load.Found {
	t.Helper()
	f, err := load.Look(t.Context(), load.DialerConfig{Endpoints: []load.Endpoint{s.endpoint(false, false)}, Timeout: 20 * time.Second, Verify: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLook(t *testing.T) {
	f := startEdge(t, edge.Limits{}).uncles(t)
	if len(f.Numbers) != 20 || len(f.Hashes) != 20 || len(f.Looked) != 2 {
		t.Errorf("%d by number, %d by hash, in %v", len(f.Numbers), len(f.Hashes), f.Looked)
	}
	if q := f.Numbers[0]; q.Params != `["0x10","0x0"]` || q.Method != "eth_getUncleByBlockNumberAndIndex" {
		t.Errorf("got %+v", q)
	}
	if q := f.Hashes[0]; q.Params != `["0x`+strings.Repeat("0", 63)+`1","0x0"]` || q.Method != "eth_getUncleByBlockHashAndIndex" {
		t.Errorf("got %+v", q)
	}
}

// Every way to ask gets right answers from a real edge, all of them.
func TestRunOnEdge(t *testing.T) {
	s := startEdge(t, edge.Limits{})
	found := s.uncles(t)
	each(t, func(t *testing.T, secure, ws bool) {
		for _, c := range []struct {
			name            string
			batch, inFlight int
			rate            float64
			gzip            bool
		}{
			{name: "closed"}, {name: "open", rate: 500}, {name: "batches", batch: 7}, {name: "gzip", gzip: true},
			{name: "in flight", inFlight: 16}, {name: "batches in flight", inFlight: 4, batch: 3}, {name: "open in flight", inFlight: 4, rate: 300, batch: 3},
		} {
			t.Run(c.name, func(t *testing.T) {
				e := s.endpoint(secure, ws)
				e.Gzip = c.gzip
				d := newDialer(t, load.DialerConfig{
					Endpoints: []load.Endpoint{e}, Questions: append(found.Numbers, found.Hashes...), Batch: c.batch, Verify: true,
				})
				r, err := load.Run(t.Context(), load.Config{
					Dialer: d, Connections: 5, InFlight: c.inFlight, Rate: c.rate, WarmUp: 10 * time.Millisecond, Duration: 100 * time.Millisecond,
				})
				if err != nil {
					t.Fatal(err)
				}
				if r.Calls == 0 || r.Right != r.Calls || r.Null != 0 || r.Opened != 5 || len(r.Opening) != 0 || int(r.Latency.TotalCount()) != r.Requests {
					t.Errorf("%+v, %d opened, %v, %d in the histogram", r.Counts, r.Opened, r.Opening, r.Latency.TotalCount())
				}
				if c.rate > 0 && (float64(r.Calls) < c.rate*0.1-float64(3) || float64(r.Calls) > c.rate*r.Took.Seconds()+3) {
					t.Errorf("%d calls in %v at %v calls/s", r.Calls, r.Took, c.rate)
				}
			})
		}
	})
}

// What a real edge refuses is told by kind, and the key is in none of it.
func TestEdgeFailures(t *testing.T) {
	s := startEdge(t, edge.Limits{InFlight: 4})
	failing := schema.Question{Block: schema.Number(100)}
	s.resolver.Set(failing, schema.Answer{Err: &schema.Error{Code: schema.Overloaded}})
	untrue := schema.Question{Block: schema.Number(101)}
	s.resolver.Set(untrue, schema.Answer{Result: []byte(`{"hash":"0x` + strings.Repeat("0", 64) + `"}`)})
	good := load.Numbers(load.Range{From: 16, To: 35}, 0)
	plain, ws := s.endpoint(false, false), s.endpoint(false, true)
	unknown, handshake := plain, ws
	unknown.Path, handshake.Path = "/v3/not-"+edgeKey, "/ws/v3/not-"+edgeKey
	for _, tt := range []struct {
		name            string
		e               load.Endpoint
		ask             []load.Question
		batch, inFlight int
		want            string
	}{
		{"unknown key", unknown, good, 0, 0, "HTTP status 401"},
		{"unknown key, handshake", handshake, good, 0, 0, "handshake status 401"},
		{"overloaded", plain, load.Numbers(load.Range{From: 100, To: 100}, 0), 0, 0, "JSON-RPC error -32005"},
		{"overloaded, batch", ws, load.Numbers(load.Range{From: 100, To: 100}, 0), 2, 3, "JSON-RPC error -32005"},
		{"too many in flight", ws, good, 5, 0, "JSON-RPC error -32005"},
		{"wrong parameters", plain, []load.Question{{Method: good[0].Method, Params: `["3","0x0"]`}}, 0, 0, "JSON-RPC error -32602"},
		{"untrue", ws, load.Numbers(load.Range{From: 101, To: 101}, 0), 0, 2, load.KindWrong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDialer(t, load.DialerConfig{Endpoints: []load.Endpoint{tt.e}, Questions: tt.ask, Batch: tt.batch, Verify: true})
			r, _ := load.Run(t.Context(), load.Config{Dialer: d, Connections: 2, InFlight: tt.inFlight, Duration: 50 * time.Millisecond})
			if r.Failed[tt.want].Count+r.Opening[tt.want].Count == 0 || r.ErrorRatio() == 0 {
				t.Errorf("no %q in %+v, %+v", tt.want, r.Failed, r.Opening)
			}
			for _, kinds := range []map[string]load.Failed{r.Failed, r.Opening} {
				for kind, f := range kinds {
					if strings.Contains(kind+f.Example, edgeKey) {
						t.Errorf("the key is in %s: %s", kind, f.Example)
					}
				}
			}
		})
	}
}

// Requests that get no answer time out, in flight or not. The schedule has each of them
// due in the measured time.
func TestEdgeTimeouts(t *testing.T) {
	s := startEdge(t, edge.Limits{})
	s.resolver.Hold()
	for _, ws := range []bool{false, true} {
		for _, inFlight := range []int{1, 8} {
			d := newDialer(t, load.DialerConfig{
				Endpoints: []load.Endpoint{s.endpoint(false, ws)}, Questions: load.Numbers(load.Range{From: 16, To: 35}, 0), Timeout: 500 * time.Millisecond,
			})
			r, err := load.Run(t.Context(), load.Config{Dialer: d, Connections: 3, InFlight: inFlight, Rate: 1000, Duration: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			timedOut, unsent := r.Failed[load.KindTimeout].Count+r.Failed[load.KindUnanswered].Count, r.Failed[load.KindUnsent].Count
			if r.Right != 0 || timedOut == 0 || timedOut+unsent != r.Calls {
				t.Errorf("WebSocket %v, %d in flight: %+v", ws, inFlight, r.Counts)
			}
		}
	}
}

// A connection that the server closes says with which code, and is opened again.
func TestClosedWithCode(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		if _, _, err := c.Read(r.Context()); err == nil {
			_ = c.Close(4401, "revoked")
		}
	}))
	defer s.Close()
	for _, inFlight := range []int{1, 4} {
		d := newDialer(t, load.DialerConfig{
			Endpoints: []load.Endpoint{{Addr: s.Listener.Addr().String(), Path: "/", WS: true}}, Questions: []load.Question{{Method: "m", Params: "[]"}},
		})
		ctx, cancel := context.WithCancel(t.Context())
		r, err := load.Run(ctx, load.Config{
			Dialer: d, Connections: 3, InFlight: inFlight, Duration: time.Hour,
			Progress: func(tick load.Tick) {
				if tick.Failures() > 0 && tick.Measured {
					cancel()
				}
			},
		})
		cancel()
		if err != nil || r.Failures() != r.Calls || r.Failed["closed with 4401"].Example != "revoked" || r.Opened < 6 {
			t.Errorf("%d in flight: %v, %+v, %d opened", inFlight, err, r.Counts, r.Opened)
		}
	}
}

// An answer that comes twice is told from one that never should have come, together with
// the right one or later, and counts even if nobody waits.
func TestAnsweredTwice(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		for {
			_, body, err := c.Read(r.Context())
			var call struct{ ID json.RawMessage }
			if err != nil || json.Unmarshal(body, &call) != nil {
				return
			}
			for range 2 {
				answer := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":null}`, call.ID)
				if c.Write(r.Context(), websocket.MessageText, answer) != nil {
					return
				}
			}
		}
	}))
	defer s.Close()
	for _, inFlight := range []int{1, 4} {
		d := newDialer(t, load.DialerConfig{
			Endpoints: []load.Endpoint{{Addr: s.Listener.Addr().String(), Path: "/", WS: true}}, Questions: []load.Question{{Method: "m", Params: "[]"}},
		})
		r, err := load.Run(t.Context(), load.Config{Dialer: d, Connections: 2, InFlight: inFlight, Duration: 100 * time.Millisecond})
		if err != nil || r.Failed[load.KindTwice].Count == 0 || r.Failures() != r.Failed[load.KindTwice].Count || r.Wrong() == 0 {
			t.Errorf("%d in flight: %v, %+v", inFlight, err, r.Counts)
		}
	}
}

// A report's histogram can be read and added to another one.
func TestReportHistogram(t *testing.T) {
	s := startEdge(t, edge.Limits{})
	d := newDialer(t, load.DialerConfig{Endpoints: []load.Endpoint{s.endpoint(false, false)}, Questions: load.Numbers(load.Range{From: 16, To: 35}, 0)})
	r, err := load.Run(t.Context(), load.Config{Dialer: d, Connections: 2, Duration: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := r.Report("v0", time.Now(), load.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	back, err := hdr.Decode([]byte(rep.Histogram))
	if err != nil {
		t.Fatal(err)
	}
	if !back.Equals(r.Latency) || back.Merge(r.Latency) != 0 || back.TotalCount() != 2*int64(r.Requests) {
		t.Errorf("%d came back, and added make %d", r.Requests, back.TotalCount())
	}
	var out bytes.Buffer
	if err := r.PrintHistogram(&out); err != nil || !strings.Contains(out.String(), "#[Max") {
		t.Errorf("%v: %s", err, out.String())
	}
}
