//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"syscall"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/ommer/ommer/deploy/transcript"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// world is where transcripts are played: a NATS server, a worker whose cache has no room,
// and an upstream node that does as it is told. Edges come and go.
type world struct {
	fleet  *fleet
	key    string
	source *source
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := newSource(t)
	f := newFleet(t)
	f.startNATS()
	w := &world{fleet: f, key: f.createKey("good"), source: s}
	worker := f.startWorker(s.node.URL, "--cache-bytes=1")
	waitReady(t, worker.process, worker.admin)
	s.settle = func() {
		for _, what := range []string{"ommer_workers_fetches", "ommer_upstream_left_alone"} {
			eventually(t, soon, "the worker to have its answers, and to ask again", func() error {
				n, err := worker.metric(what)
				if err == nil && n > 0 {
					err = fmt.Errorf("%s is %v", what, n)
				}
				return err
			})
		}
	}
	return w
}

func (w *world) Name() string { return transcript.EndToEnd }

func (w *world) Source() transcript.Source { return w.source }

func (w *world) NewKey(t *testing.T, name string, settings []string) (key string, revoke func()) {
	t.Helper()
	return w.fleet.createKey(name, settings...), func() {
		if _, stderr, code := w.fleet.keys("revoke", name); code != 0 {
			t.Fatalf("revoke: exit code %d, %s", code, stderr)
		}
	}
}

func (w *world) Edge(t *testing.T, flags []string) *transcript.Edge {
	t.Helper()
	e := w.fleet.startEdge(flags...)
	t.Cleanup(e.end)
	waitReady(t, e.process, e.admin)
	return &transcript.Edge{
		HTTP: e.http, HTTPS: e.https, Roots: w.fleet.certs.roots, Key: w.key,
		Stop: func() { e.signal(syscall.SIGTERM) },
		Metrics: func() (string, error) {
			_, text, err := e.get("/metrics")
			return text, err
		},
	}
}

// source is the upstream node and what it was told.
type source struct {
	node  *upstreamtest.Node
	chain transcript.Chain
	head  string // hash of the last block, by which edges' trial lookups ask too

	// settle waits until nobody waits for what was held, and the node is asked. A lookup
	// that its caller has given up goes on in the worker, for the next one who asks.
	settle func()

	mu      sync.Mutex
	open    chan struct{} // closed while lookups pass
	waiting int
	held    bool                        // since the last Reset
	faults  map[string]transcript.Fault // by the block's number and hash, as they stand in calls
}

func newSource(t *testing.T) *source {
	t.Helper()
	chain, err := transcript.Sample()
	if err != nil {
		t.Fatal(err)
	}
	last := len(chain.Blocks) - 1
	former := append(upstreamtest.Chain{}, chain.Blocks[:last]...)
	s := &source{
		chain: chain, head: chain.Blocks[last].Hash().Hex(),
		open: make(chan struct{}), faults: map[string]transcript.Fault{},
		node: upstreamtest.Start(t, append(former, chain.Side)),
	}
	close(s.open)
	t.Cleanup(s.Release)
	s.node.Handle(s.handle)
	s.node.Falsify(s.answer)
	s.Reset()
	return s
}

// handle takes a request to the node: it holds lookups back, and breaks connections.
func (s *source) handle(w http.ResponseWriter, r *http.Request, node http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	lookup := bytes.Contains(body, []byte("eth_getUncle")) && !bytes.Contains(body, []byte(s.head))
	if lookup && !s.pass(r) {
		return
	}
	s.mu.Lock()
	faults := maps.Clone(s.faults)
	s.mu.Unlock()
	for block, f := range faults {
		if f == transcript.Unreachable && bytes.Contains(body, []byte(`"`+block+`"`)) {
			panic(http.ErrAbortHandler)
		}
	}
	node.ServeHTTP(w, r)
}

// pass waits until lookups pass. It is false when the asker has gone.
func (s *source) pass(r *http.Request) bool {
	s.mu.Lock()
	open := s.open
	s.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
	}()
	select {
	case <-open:
		return true
	case <-r.Context().Done():
		return false
	}
}

// answer is what the node says of a block, or of an uncle if the index is not -1.
func (s *source) answer(_, block string, index int, object map[string]any) (map[string]any, error) {
	s.mu.Lock()
	fault := s.faults[block]
	s.mu.Unlock()
	switch {
	case fault == transcript.Pruned:
		return nil, &upstreamtest.Error{Code: 4444, Message: "pruned history unavailable"}
	case fault == transcript.Overloaded:
		return nil, &upstreamtest.Error{Code: -32005, Message: "limit exceeded"}
	case fault == transcript.Bodiless && index >= 0:
		return nil, nil
	case fault == transcript.Untrue && object != nil && index >= 0:
		object = maps.Clone(object)
		object["timestamp"] = "0x1"
	}
	return object, nil
}

func (s *source) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.held = make(chan struct{}), true
}

func (s *source) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.open:
	default:
		close(s.open)
	}
}

func (s *source) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

func (s *source) Fail(f transcript.Fault, block uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[rpc.BlockNumber(block).String()] = f
	s.faults[s.chain.Blocks[block].Hash().Hex()] = f
}

func (s *source) Unfinalize() { s.node.SetFinalized(-1) }

// Asked is not known: edges make trial lookups of their own.
func (s *source) Asked() int { return -1 }

func (s *source) Reset() {
	s.Release()
	s.mu.Lock()
	busy := s.held
	for _, f := range s.faults {
		busy = busy || f == transcript.Overloaded // it is left alone for a while
	}
	clear(s.faults)
	s.held = false
	s.mu.Unlock()
	if busy {
		s.settle()
	}
	s.node.SetChain(upstreamtest.Chain(s.chain.Blocks))
	s.node.SetFinalized(int64(s.chain.Finalized))
}
