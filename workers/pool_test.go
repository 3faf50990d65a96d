package workers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
	"github.com/ommer/ommer/schema/uncle"
	"github.com/ommer/ommer/workers/upstream"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

var testChain = sync.OnceValue(func() upstreamtest.Chain { return upstreamtest.Generate(24, 24, "main") })

// newPool starts a pool that ends with the test.
func newPool(t testing.TB, cfg Config) *Pool {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, p) })
	return p
}

func stop(t testing.TB, p *Pool) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// newSet returns a source over nodes, which is being run.
func newSet(t testing.TB, urls ...string) *upstream.Set {
	t.Helper()
	s, err := upstream.New(upstream.Config{URLs: urls, PollInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx) // always nil
	}()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// lookup asks and waits.
func lookup(r schema.Resolver, q schema.Question, deadline time.Time) schema.Answer {
	answers := make(chan schema.Answer, 1)
	r.Resolve(q, deadline, schema.ReceiverFunc(func(a schema.Answer) { answers <- a }))
	return <-answers
}

// want is the result for an uncle of a chain.
func want(c upstreamtest.Chain, block, index int) string {
	if uncles := c[block].Uncles(); index < len(uncles) {
		return string(uncle.Append(nil, uncles[index]))
	}
	return "null"
}

func TestConformance(t *testing.T) {
	chain := testChain()
	schematest.Conformance(t, func(t *testing.T) schematest.Subject {
		node := upstreamtest.Start(t, chain)
		// Without its view: from that the head is told while the node is stalled.
		p := newPool(t, Config{Source: struct{ Source }{newSet(t, node.URL)}})
		known := map[schema.Question]string{
			{Block: schema.Tagged(schema.Latest), Index: 0}:   want(chain, 24, 0),
			{Block: schema.Tagged(schema.Earliest), Index: 0}: "null",
			{Block: schema.Tagged(schema.Safe), Index: 0}:     "null",
			{Block: schema.Tagged(schema.Pending), Index: 1}:  "null",
		}
		for n := 3; n < 9; n++ {
			for i := range 3 {
				known[schema.Question{Block: schema.Number(uint64(n)), Index: uint64(i)}] = want(chain, n, i)
				known[schema.Question{Block: schema.BlockHash(schema.Hash(chain[n].Hash())), Index: uint64(i)}] = want(chain, n, i)
			}
		}
		// What no block can have is answered however long the node keeps silent.
		for q := range known {
			if q.Index >= upstream.MaxUncles {
				delete(known, q)
			}
		}
		return schematest.Subject{
			Resolver: p,
			Known:    known,
			Stall: func() (release func()) {
				held := make(chan struct{})
				node.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
					select {
					case <-held:
						node.ServeHTTP(w, r)
					case <-r.Context().Done():
					}
				})
				return sync.OnceFunc(func() { close(held) })
			},
			Stop: func() { stop(t, p) },
		}
	})
}

func TestEveryUncle(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain)
	node.SetFinalized(12)
	p := newPool(t, Config{Source: newSet(t, node.WSURL)})
	for range 2 { // from the node, then from the cache
		for n := range chain {
			for index := range 4 {
				for _, b := range []schema.Selector{schema.Number(uint64(n)), schema.BlockHash(schema.Hash(chain[n].Hash()))} {
					a := lookup(p, schema.Question{Block: b, Index: uint64(index)}, time.Time{})
					if a.Err != nil || string(a.Result) != want(chain, n, index) {
						t.Fatalf("%v, %d: %.99s %v, want %.99s", b, index, a.Result, a.Err, want(chain, n, index))
					}
				}
			}
		}
	}
}

func TestReorgIsFollowed(t *testing.T) {
	before, after := upstreamtest.Generate(24, 12, "before"), upstreamtest.Generate(24, 12, "after")
	node := upstreamtest.Start(t, before)
	node.SetFinalized(12)
	p := newPool(t, Config{Source: newSet(t, node.URL)})
	ask := func(b schema.Selector) string {
		return string(lookup(p, schema.Question{Block: b}, time.Time{}).Result)
	}
	old, settled := schema.BlockHash(schema.Hash(before[20].Hash())), want(before, 11, 0)
	if got := ask(schema.Number(20)); got != want(before, 20, 0) {
		t.Fatalf("before: %.99s", got)
	}
	node.SetChain(after)
	moved := time.Now()
	for ask(schema.Number(20)) != want(after, 20, 0) {
		if time.Since(moved) > Fresh+5*time.Second {
			t.Fatal("the old block is served long after the reorg")
		}
		time.Sleep(10 * time.Millisecond) // polls a condition
	}
	if got := ask(schema.Number(11)); got != settled {
		t.Errorf("a final block has changed: %.99s", got)
	}
	if got := ask(old); got != want(before, 20, 0) {
		t.Errorf("the block that is no longer canonical: %.99s", got)
	}
}

func TestSecondNodeAnswers(t *testing.T) {
	chain := testChain()
	pruned, full := upstreamtest.Start(t, chain), upstreamtest.Start(t, chain)
	pruned.Falsify(func(_, _ string, index int, o map[string]any) (map[string]any, error) {
		if index >= 0 {
			return nil, nil // as nodes that have dropped bodies do
		}
		return o, nil
	})
	q := schema.Question{Block: schema.Number(5)}
	if a := lookup(newPool(t, Config{Source: newSet(t, pruned.URL)}), q, time.Time{}); a.Err == nil || a.Err.Code != schema.Pruned {
		t.Errorf("a pruned node alone: %.99s %v, want a failure", a.Result, a.Err)
	}
	if a := lookup(newPool(t, Config{Source: newSet(t, pruned.URL, full.URL)}), q, time.Time{}); string(a.Result) != want(chain, 5, 0) {
		t.Errorf("with a full one: %.99s %v", a.Result, a.Err)
	}
}

func TestUnreachableIsUnavailable(t *testing.T) {
	s := newSet(t, "http://127.0.0.1:1/"+upstreamtest.Secret)
	p := newPool(t, Config{Source: s})
	a := lookup(p, schema.Question{Block: schema.Number(5)}, time.Time{})
	if a.Err == nil || a.Err.Code != schema.Unavailable {
		t.Fatalf("%.99s %v, want it unavailable", a.Result, a.Err)
	}
	if strings.Contains(a.Err.Detail, upstreamtest.Secret) {
		t.Errorf("the detail shows the URL's secret: %s", a.Err.Detail)
	}
	if err := p.Ready(); err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:1") {
		t.Errorf("ready: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	reg := prometheus.NewRegistry()
	taken := newPool(t, Config{Source: &script{}, Registerer: reg})
	for name, cfg := range map[string]Config{
		"no source":      {},
		"negative limit": {Source: &script{}, MaxWaiting: -1},
		"metrics taken":  {Source: &script{}, Registerer: reg},
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := New(cfg); err == nil {
				stop(t, p)
				t.Error("it was accepted")
			}
		})
	}
	stop(t, taken)
	newPool(t, Config{Source: &script{}, Registerer: reg, Logger: slog.New(slog.DiscardHandler)})
}

func TestRunStops(t *testing.T) {
	p, err := New(Config{Source: &script{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Run(ctx); err != nil {
		t.Error(err)
	}
	if a := lookup(p, schema.Question{Block: schema.Number(5)}, time.Time{}); a.Err == nil || a.Err.Code != schema.Draining {
		t.Errorf("after the stop: %v %v, want Draining", a.Result, a.Err)
	}
	if p.Ready() == nil {
		t.Error("ready after the stop")
	}
}

func TestFailure(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want schema.Code
	}{
		{"pruned", upstream.ErrPruned, schema.Pruned},
		{"unreachable", upstream.ErrUnreachable, schema.Unavailable},
		{"out of time", context.DeadlineExceeded, schema.Timeout},
		{"overloaded", upstream.ErrOverloaded, schema.Overloaded},
		{"untrue", upstream.ErrUntrue, schema.Internal},
		{"failed", upstream.ErrFailed, schema.Internal},
		{"unknown fields", upstream.ErrUnknownFields, schema.Internal},
		{"anything else", errPanic, schema.Internal},
		{"one pruned, one unreachable", fmt.Errorf("%w; %w", upstream.ErrUnreachable, upstream.ErrPruned), schema.Pruned},
		{"one untrue, one unreachable", fmt.Errorf("%w; %w", upstream.ErrUnreachable, upstream.ErrUntrue), schema.Internal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := failure(fmt.Errorf("node: %w", tt.err))
			if got.Code != tt.want || !strings.Contains(got.Detail, "node: ") {
				t.Errorf("got %v, want %v and the reason", got, tt.want)
			}
		})
	}
}
