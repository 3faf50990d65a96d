package upstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// hold makes a node keep back its answers until release is called.
func hold(t *testing.T, n *upstreamtest.Node) (release func()) {
	held := make(chan struct{})
	n.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
		select {
		case <-held:
			node.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
	release = sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	return release
}

func checkLookup(t *testing.T, s *Set, n uint64) {
	t.Helper()
	b, found, err := s.Block(ctxFor(t, 20*time.Second), schema.Number(n))
	if err != nil || !found {
		t.Errorf("block %d: found %v, %v", n, found, err)
		return
	}
	checkBlock(t, b, testChain()[n])
}

// all looks up n blocks at once.
func all(t *testing.T, s *Set, n int) {
	t.Helper()
	var lookups sync.WaitGroup
	for i := range n {
		lookups.Go(func() { checkLookup(t, s, uint64(i%len(testChain()))) })
	}
	lookups.Wait()
}

// The preferred node has become slow. Those who wait for it are helped by the other one.
func TestSlowNodeIsHedged(t *testing.T) {
	slow, quick := upstreamtest.Start(t, testChain()), upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{slow.URL, quick.URL}, CallTimeout: time.Hour, Registerer: prometheus.NewRegistry()})
	for range leastPaces {
		checkLookup(t, s, 5)
	}
	if got := quick.Requests.Load(); got != 0 {
		t.Fatalf("the second node was asked %d times, while the first was quick", got)
	}
	release := hold(t, slow)
	checkLookup(t, s, 6)
	if got := testutil.ToFloat64(s.metrics.hedges); got != 1 {
		t.Errorf("%v hedges counted, want 1", got)
	}
	release()
}

// The preferred node hangs. All who wait for it are sent to the other one, credit or not,
// and later ones do not wait for it at all.
func TestHungNodeIsLeft(t *testing.T) {
	hung, sound := upstreamtest.Start(t, testChain()), upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{hung.URL, sound.URL}, CallTimeout: time.Hour, MaxWait: -1, Registerer: prometheus.NewRegistry()})
	checkLookup(t, s, 5)
	n := s.nodes[0]
	hold(t, hung)
	s.credit.spent.Store(hedgeCredit)
	all(t, s, 200)
	asked := testutil.ToFloat64(n.metrics.requests)
	all(t, s, 400) // in groups of 32 at most
	if got := testutil.ToFloat64(n.metrics.requests) - asked; got > 5 {
		t.Errorf("a node that hangs was asked %v times more", got)
	}
}

// That a block does not exist is said though one of the nodes hangs.
func TestHungNodeNeedNotConfirm(t *testing.T) {
	sound, hung := upstreamtest.Start(t, testChain()), upstreamtest.Start(t, testChain())
	hold(t, hung)
	for _, urls := range [][]string{{sound.URL, hung.URL}, {hung.URL, sound.URL}} {
		s := newSet(t, Config{URLs: urls, ChainID: upstreamtest.ChainID, CallTimeout: 5 * time.Second})
		_, found, err := s.Block(ctxFor(t, time.Hour), schema.BlockHash(schema.Hash{1}))
		if found || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
	}
}

// One node has pruned the block and the other one cannot be reached for a moment.
func TestMomentOutOfReach(t *testing.T) {
	away, pruned := upstreamtest.Start(t, testChain()), upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{away.URL, pruned.URL}})
	checkLookup(t, s, 1)
	first := true
	away.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
		if first {
			first = false
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		node.ServeHTTP(w, r)
	})
	pruned.Falsify(func(string, string, int, map[string]any) (map[string]any, error) {
		return nil, &upstreamtest.Error{Code: 4444, Message: "pruned history unavailable"}
	})
	checkLookup(t, s, 5)
}

// A node that has pruned a block is not asked first for it again.
func TestPrunedNodeIsAskedLast(t *testing.T) {
	pruned, full := upstreamtest.Start(t, testChain()), upstreamtest.Start(t, testChain())
	pruned.Falsify(func(_, _ string, index int, o map[string]any) (map[string]any, error) {
		if index >= 0 {
			return nil, &upstreamtest.Error{Code: 4444, Message: "pruned history unavailable"}
		}
		return o, nil
	})
	s := newSet(t, Config{URLs: []string{pruned.URL, full.URL}})
	checkLookup(t, s, 11)
	before := pruned.Requests.Load()
	for n := range 12 {
		checkLookup(t, s, uint64(n))
	}
	if got := pruned.Requests.Load() - before; got != 0 {
		t.Errorf("asked %d times more", got)
	}
	checkLookup(t, s, 12) // has no uncles, so that it is not pruned
	if got := pruned.Requests.Load() - before; got == 0 {
		t.Error("not asked for what it may have")
	}
}

// A node that serves another chain from one moment on is left.
func TestChainChanges(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{node.URL}, PollInterval: 5 * time.Millisecond})
	run(t, s)
	eventually(t, func() bool { return s.Ready() == nil })
	node.SetChainID(5)
	eventually(t, func() bool { return s.Ready() != nil })
	if err := s.Ready(); !strings.Contains(err.Error(), "chain 5") {
		t.Error(err)
	}
}

// A node that knows of no such block, and of its uncle, is not believed.
func TestUncleOfNoBlock(t *testing.T) {
	node, sound := upstreamtest.Start(t, testChain()), upstreamtest.Start(t, testChain())
	node.Falsify(func(_, block string, index int, o map[string]any) (map[string]any, error) {
		if block == "0x5" && index < 0 {
			return nil, nil
		}
		return o, nil
	})
	alone := newSet(t, Config{URLs: []string{node.URL}})
	if _, _, err := alone.Block(ctxFor(t, 10*time.Second), schema.Number(5)); !errors.Is(err, ErrFailed) {
		t.Errorf("alone: %v, want ErrFailed", err)
	}
	checkLookup(t, newSet(t, Config{URLs: []string{node.URL, sound.URL}}), 5)
}

func TestCredit(t *testing.T) {
	var c credit
	hedges := 0
	for range 100_000 {
		c.earn()
		if c.spend() {
			hedges++
		}
	}
	if most := 100_000/hedgePrice + hedgeCredit/hedgePrice; hedges > most || hedges < most-1 {
		t.Errorf("%d hedges in 100,000 lookups, want %d", hedges, most)
	}
}

// A node that is overloaded is left alone for as long as it asks for.
func TestOverloadedNodeIsLeftAlone(t *testing.T) {
	for name, refuse := range map[string]func(n *upstreamtest.Node){
		"by status": func(n *upstreamtest.Node) {
			n.Handle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(http.StatusTooManyRequests)
			})
		},
		"by error": func(n *upstreamtest.Node) {
			n.Falsify(func(string, string, int, map[string]any) (map[string]any, error) {
				return nil, &upstreamtest.Error{Code: -32005, Message: "limit exceeded"}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			busy, other := upstreamtest.Start(t, testChain()), upstreamtest.Start(t, testChain())
			s := newSet(t, Config{URLs: []string{busy.URL, other.URL}})
			checkLookup(t, s, 1)
			refuse(busy)
			checkLookup(t, s, 2)
			before := busy.Requests.Load()
			all(t, s, 50)
			if got := busy.Requests.Load() - before; got != 0 && name == "by status" {
				t.Errorf("asked %d times more", got)
			}
			alone := newSet(t, Config{URLs: []string{busy.URL}, ChainID: upstreamtest.ChainID})
			for range 3 {
				if _, _, err := alone.Block(ctxFor(t, 10*time.Second), schema.Number(3)); !errors.Is(err, ErrOverloaded) {
					t.Errorf("alone: %v, want ErrOverloaded", err)
				}
			}
		})
	}
}

// However much is asked, a node gets no more calls per second than its terms allow.
func TestRateIsKept(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	began := time.Now()
	s := newSet(t, Config{URLs: []string{node.URL + "#rps=60"}})
	var refused atomic.Int64
	var lookups sync.WaitGroup
	for i := range 500 {
		lookups.Go(func() {
			switch _, _, err := s.Block(ctxFor(t, 500*time.Millisecond), schema.Number(uint64(i%24))); {
			case errors.Is(err, ErrOverloaded), errors.Is(err, ErrUnreachable):
				refused.Add(1)
			case err != nil:
				t.Error(err)
			}
		})
	}
	lookups.Wait()
	if got, most := float64(node.Calls.Load()), 60+60*time.Since(began).Seconds(); got > most || refused.Load() == 0 {
		t.Errorf("%v calls, at most %v are allowed; %d refused", got, most, refused.Load())
	}
}

// What a node may not be asked for is asked of the next one at once.
func TestRateSpills(t *testing.T) {
	limited, free := upstreamtest.Start(t, testChain()), upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{limited.URL + "#rps=0.1", free.URL}, MaxWait: -1})
	all(t, s, 100)
	if got := limited.Calls.Load(); got > 2*callsEach {
		t.Errorf("%d calls of a node that may be asked for one in 10 s", got)
	}
}

func TestLoadIsShared(t *testing.T) {
	const lookups = 400
	a, b := upstreamtest.Start(t, testChain()), upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{a.URL + "#priority=1", b.URL + "#priority=1"}})
	all(t, s, lookups)
	for _, n := range []*upstreamtest.Node{a, b} {
		if got := n.Calls.Load(); got < lookups*callsEach/10 {
			t.Errorf("a node got %d of %d calls", got, lookups*callsEach)
		}
	}
}

// Lookups that come while a node is busy travel together.
func TestLookupsAreGathered(t *testing.T) {
	for name, url := range map[string]func(*upstreamtest.Node) string{
		"http":      func(n *upstreamtest.Node) string { return n.URL },
		"websocket": func(n *upstreamtest.Node) string { return n.WSURL },
	} {
		t.Run(name, func(t *testing.T) {
			const lookups = 320
			node := upstreamtest.Start(t, testChain())
			s := newSet(t, Config{URLs: []string{url(node)}, Gather: time.Hour, MaxWait: -1, Registerer: prometheus.NewRegistry()})
			checkLookup(t, s, 1) // connects
			m := s.nodes[0].metrics
			requests, calls := testutil.ToFloat64(m.requests), testutil.ToFloat64(m.calls)
			all(t, s, lookups)
			requests, calls = testutil.ToFloat64(m.requests)-requests, testutil.ToFloat64(m.calls)-calls
			if most := float64(lookups / 4); requests > most || calls != lookups*callsEach {
				t.Errorf("%v requests with %v calls for %d blocks, want at most %v with %d", requests, calls, lookups, most, lookups*callsEach)
			}
		})
	}
}

// What one lookup of a round trip meets with is no concern of the others.
func TestLookupsOfOneTripAreApart(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	node.Falsify(func(_, block string, index int, o map[string]any) (map[string]any, error) {
		switch {
		case block == "0x5":
			return nil, &upstreamtest.Error{Code: 4444, Message: "pruned history unavailable"}
		case block == "0x7":
			o["gasUsed"] = "0x1"
		case block == "0x8" && index == 1:
			return nil, nil
		}
		return o, nil
	})
	s := newSet(t, Config{URLs: []string{node.URL}})
	sels := make([]schema.Selector, 12)
	for i := range sels {
		sels[i] = schema.Number(uint64(i))
	}
	sels[10] = schema.Number(1000)
	before := node.Requests.Load()
	outcomes := s.nodes[0].blocks(ctxFor(t, 10*time.Second), sels)
	if got := node.Requests.Load() - before; got > 1+3 { // eth_chainId, and once more for those that did not match
		t.Errorf("%d requests", got)
	}
	for i, o := range outcomes {
		want := map[int]error{5: ErrPruned, 7: ErrUntrue}[i] // the uncles of 8 can be had by its hash
		switch {
		case !errors.Is(o.err, want):
			t.Errorf("block %d: %v, want %v", i, o.err, want)
		case want == nil && o.found != (i != 10):
			t.Errorf("block %d: found %v", i, o.found)
		case o.found:
			checkBlock(t, o.block, testChain()[i])
		}
	}
}

// Whoever waits is answered when the Set closes.
func TestCloseAnswersEveryone(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	s, err := New(Config{URLs: []string{node.URL + "#in-flight=1&batch=1"}, ChainID: upstreamtest.ChainID, MaxWait: -1})
	if err != nil {
		t.Fatal(err)
	}
	hold(t, node)
	var lookups sync.WaitGroup
	for range 50 {
		lookups.Go(func() {
			if _, _, err := s.Block(context.Background(), schema.Number(5)); err == nil {
				t.Error("an answer of a node that gives none")
			}
		})
	}
	eventually(t, func() bool { return s.nodes[0].waiting.Load() == 49 })
	s.Close()
	lookups.Wait()
	if _, _, err := s.Block(context.Background(), schema.Number(5)); err == nil {
		t.Error("an answer after the end")
	}
}
