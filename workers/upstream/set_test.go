package upstream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

var testChain = sync.OnceValue(func() upstreamtest.Chain { return upstreamtest.Generate(24, 24, "main") })

func newSet(t testing.TB, cfg Config) *Set {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func ctxFor(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func checkBlock(t testing.TB, got Block, want *types.Block) {
	t.Helper()
	if got.Header.Hash() != want.Hash() {
		t.Errorf("block %v, want %v", got.Header.Hash(), want.Hash())
	}
	if types.CalcUncleHash(got.Uncles) != want.UncleHash() || len(got.Uncles) != len(want.Uncles()) {
		t.Errorf("block %v: %d uncles that are not its own %d", want.Number(), len(got.Uncles), len(want.Uncles()))
	}
}

func TestBlock(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain)
	for _, tt := range []struct{ name, url string }{{"http", node.URL}, {"websocket", node.WSURL}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSet(t, Config{URLs: []string{tt.url}})
			for n, want := range chain {
				for _, sel := range []schema.Selector{schema.Number(uint64(n)), schema.BlockHash(schema.Hash(want.Hash()))} {
					got, found, err := s.Block(ctxFor(t, 10*time.Second), sel)
					if err != nil || !found {
						t.Fatalf("%v: found %v, %v", sel, found, err)
					}
					checkBlock(t, got, want)
					if got.Final {
						t.Errorf("%v is final on a chain without finality", sel)
					}
				}
			}
			if id, ok := s.ChainID(); !ok || id != upstreamtest.ChainID {
				t.Errorf("chain %d, %v", id, ok)
			}
		})
	}
}

func TestBlockIsOneRoundTrip(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{node.URL}})
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(1)); err != nil { // connects
		t.Fatal(err)
	}
	before := node.Requests.Load()
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); err != nil {
		t.Fatal(err)
	}
	if got := node.Requests.Load() - before; got != 1 {
		t.Errorf("%d requests for a block with two uncles, want 1", got)
	}
}

func TestBlockByTag(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain[:24]) // the head has two uncles
	s := newSet(t, Config{URLs: []string{node.URL}})
	ask := func(tag schema.Tag) (Block, bool) {
		t.Helper()
		b, found, err := s.Block(ctxFor(t, 10*time.Second), schema.Tagged(tag))
		if err != nil {
			t.Fatalf("%v: %v", tag, err)
		}
		return b, found
	}
	for _, tag := range []schema.Tag{schema.Pending, schema.Safe, schema.Finalized} {
		if _, found := ask(tag); found {
			t.Errorf("%v found where the node has none", tag)
		}
	}
	b, _ := ask(schema.Latest)
	checkBlock(t, b, chain[23])
	b, _ = ask(schema.Earliest)
	checkBlock(t, b, chain[0])
	node.SetFinalized(8)
	b, _ = ask(schema.Finalized)
	checkBlock(t, b, chain[8])
}

func TestBlockPending(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain)
	// A node with a pending block: block 5 without what is not settled yet.
	proxy := upstreamtest.Start(t, chain)
	proxy.Handle(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		pendingProxy(t, w, r, node)
	})
	node.Falsify(func(_, block string, index int, object map[string]any) (map[string]any, error) {
		if block == "0x5" && index < 0 {
			object["hash"], object["nonce"], object["miner"] = nil, nil, nil
		}
		return object, nil
	})
	s := newSet(t, Config{URLs: []string{proxy.URL}})
	b, found, err := s.Block(ctxFor(t, 10*time.Second), schema.Tagged(schema.Pending))
	if err != nil || !found || b.Header != nil {
		t.Fatalf("found %v, header %v, %v", found, b.Header, err)
	}
	if types.CalcUncleHash(b.Uncles) != chain[5].UncleHash() {
		t.Errorf("%d uncles that are not those of the pending block", len(b.Uncles))
	}
}

// pendingProxy passes a request on with block 0x5 in place of the pending one.
func pendingProxy(t *testing.T, w http.ResponseWriter, r *http.Request, node *upstreamtest.Node) {
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		t.Error(err)
	}
	req := strings.ReplaceAll(body.String(), `"pending"`, `"0x5"`)
	resp, err := http.Post(node.URL, "application/json", strings.NewReader(req))
	if err != nil {
		t.Error(err)
		return
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	body.Reset()
	if _, err := body.ReadFrom(resp.Body); err != nil {
		t.Error(err)
	}
	_, _ = w.Write(body.Bytes())
}

func TestBlockNotFound(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	other := upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{node.URL, other.URL}})
	for _, sel := range []schema.Selector{schema.Number(99), schema.Number(1 << 62), schema.BlockHash(schema.Hash{1})} {
		if _, found, err := s.Block(ctxFor(t, 10*time.Second), sel); found || err != nil {
			t.Errorf("%v: found %v, %v", sel, found, err)
		}
	}
}

func run(t *testing.T, s *Set) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("did not come true within 10 s")
		}
		time.Sleep(2 * time.Millisecond) // polls a condition
	}
}

func TestFinality(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	node.SetFinalized(8)
	s := newSet(t, Config{URLs: []string{node.URL}, PollInterval: 5 * time.Millisecond})
	run(t, s)
	eventually(t, func() bool { f, ok := s.Finalized(); return ok && f == 8 })
	if latest, ok := s.Latest(); !ok || latest != 24 {
		t.Errorf("latest %d, %v", latest, ok)
	}
	for n, want := range map[uint64]bool{0: true, 8: true, 9: false, 24: false} {
		b, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(n))
		if err != nil || b.Final != want {
			t.Errorf("block %d: final %v, want %v (%v)", n, b.Final, want, err)
		}
	}
	node.SetFinalized(16)
	eventually(t, func() bool { f, _ := s.Finalized(); return f == 16 })
}

func TestLimits(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{node.URL}, InFlight: 2, Batch: 1, Waiting: 3, Registerer: prometheus.NewRegistry()})
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); err != nil {
		t.Fatal(err)
	}
	release := hold(t, node)
	results := make(chan error, 5)
	ask := func(n int) {
		for range n {
			go func() {
				_, _, err := s.Block(ctxFor(t, 20*time.Second), schema.Number(5))
				results <- err
			}()
		}
	}
	ask(2)
	eventually(t, func() bool { return s.nodes[0].flights.Load() == 2 })
	ask(3)
	eventually(t, func() bool { return s.nodes[0].waiting.Load() == 3 })
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); !errors.Is(err, ErrOverloaded) {
		t.Errorf("beyond the limit: %v, want ErrOverloaded", err)
	}
	release()
	for range cap(results) {
		if err := <-results; err != nil {
			t.Errorf("within the limit: %v", err)
		}
	}
	lookups := s.nodes[0].metrics.lookups
	if found, refused := testutil.ToFloat64(lookups.WithLabelValues("found")), testutil.ToFloat64(lookups.WithLabelValues("overloaded")); found != 6 || refused != 1 {
		t.Errorf("counted %v found and %v overloaded, want 6 and 1", found, refused)
	}
}

// A false answer of the only node, which is right otherwise, does not take the service away.
func TestReadyInSpiteOfAFalseAnswer(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{node.URL}})
	for range 3 {
		checkLookup(t, s, 4)
	}
	node.Falsify(func(_, block string, _ int, o map[string]any) (map[string]any, error) {
		if block == "0x5" {
			o["gasUsed"] = "0x1"
		}
		return o, nil
	})
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); !errors.Is(err, ErrUntrue) {
		t.Fatal(err)
	}
	if err := s.Ready(); err != nil {
		t.Error(err)
	}
	for range 5 {
		_, _, _ = s.Block(ctxFor(t, 10*time.Second), schema.Number(5)) // false again
	}
	if s.Ready() == nil {
		t.Error("ready, with a node that lies mostly")
	}
}

func TestRegistersTwiceInTurn(t *testing.T) {
	reg := prometheus.NewRegistry()
	cfg := Config{URLs: []string{"http://127.0.0.1:1", "http://127.0.0.1:1/other-key"}, Registerer: reg}
	first := newSet(t, cfg)
	if _, err := New(cfg); err == nil {
		t.Error("the metrics of two sets were taken by one registry")
	}
	first.Close()
	newSet(t, cfg)
}

func BenchmarkBlock(b *testing.B) {
	node := upstreamtest.Start(b, testChain())
	s := newSet(b, Config{URLs: []string{node.URL}})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, found, err := s.Block(ctx, schema.Number(5)); err != nil || !found {
			b.Fatal(found, err)
		}
	}
}
