//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// The clients of the load. Each has one call in flight.
const (
	loadWS   = 64
	loadHTTP = 16
)

// loadCallers are the clients of the load, divided among the edges, half of them
// with TLS.
func loadCallers(f *fleet, key string) (callers []caller) {
	for i := range loadWS {
		callers = append(callers, f.mustWS(f.edges[i%len(f.edges)], i/2%2 == 0, key))
	}
	for i := range loadHTTP {
		callers = append(callers, f.httpCaller(f.edges[i%len(f.edges)], i/2%2 == 0, key))
	}
	return callers
}

// TestWorkersComeAndGo changes the workers under load and counts what it costs.
func TestWorkersComeAndGo(t *testing.T) {
	_, with, _ := sepolia(t)
	upstream := startNode(t, "").url
	f, key := startFleet(t, upstream, size{
		edges: 2, workers: 3,
		edgeArgs: []string{"--timeout-lookup", "2s"}, // so that what a killed worker held ends soon
	})
	all := learn(t, f.httpCaller(f.edges[0], false, key), with)
	callers := loadCallers(f, key)

	t.Run("kill -9", func(t *testing.T) {
		l := startLoad(t, all, callers)
		l.more(5000)
		f.workers[0].kill()
		l.more(10000)
		l.end()
		if l.failed.Load() > loadWS+loadHTTP || l.wrong.Load() > 0 || l.broken.Load() > 0 {
			t.Errorf("%s, want at most the %d that were in flight to fail", l, loadWS+loadHTTP)
		}
		t.Logf("%d calls were in flight when one of three workers was killed: %s", loadWS+loadHTTP, l)
	})

	t.Run("a new worker takes its share", func(t *testing.T) {
		l := startLoad(t, all, callers)
		l.more(1000)
		w := f.startWorker(upstream)
		waitReady(t, w.process, w.admin)
		share(t, f)
		l.end()
		none(t, l)
	})

	t.Run("one has lost its nodes", func(t *testing.T) {
		w := f.startWorker("http://127.0.0.1:1")
		l := startLoad(t, all, callers)
		l.more(2000)
		l.end()
		w.stop()
		// Its questions go to others, at random, up to three times.
		if total := l.right.Load() + l.failed.Load(); l.failed.Load()*20 > total || l.wrong.Load() > 0 || l.broken.Load() > 0 {
			t.Errorf("%s, want less than one in 20 to fail", l)
		}
		t.Logf("one of four workers has no node: %s", l)
	})

	t.Run("SIGTERM", func(t *testing.T) {
		l := startLoad(t, all, callers)
		l.more(5000)
		if code := f.workers[1].stop(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		l.more(5000)
		l.end()
		none(t, l)
	})
}

// none checks that a load saw no failure at all.
func none(t *testing.T, l *load) {
	t.Helper()
	if l.failed.Load() > 0 || l.wrong.Load() > 0 || l.broken.Load() > 0 {
		t.Errorf("%s, want no failure", l)
	}
	t.Log(l)
}

// share waits until each running worker has taken at least a third of what it would
// have if all took the same.
func share(t *testing.T, f *fleet) {
	t.Helper()
	var running []*worker
	for _, w := range f.workers {
		if w.running() {
			running = append(running, w)
		}
	}
	const metric = "ommer_bus_questions_total"
	before := make([]float64, len(running))
	for i, w := range running {
		before[i] = w.mustMetric(t, metric)
	}
	var taken []float64
	eventually(t, soon, "every worker to take its share", func() error {
		taken = taken[:0]
		sum := 0.0
		for i, w := range running {
			n := w.mustMetric(t, metric) - before[i]
			taken, sum = append(taken, n), sum+n
		}
		if sum < 6000 || slices.Min(taken) < sum/float64(3*len(running)) {
			return fmt.Errorf("they took %v", taken)
		}
		return nil
	})
	t.Logf("questions since the new one was ready, the new one last: %v", taken)
}

// held asks one question with each caller and waits until all of them are held by
// the gate. What comes of each is sent to its channel.
func held(ctx context.Context, t *testing.T, g *gate, callers []caller, qs []question) []chan error {
	t.Helper()
	g.hold()
	answered := make([]chan error, len(callers))
	for i, c := range callers {
		answered[i] = make(chan error, 1)
		go func() { answered[i] <- ask(ctx, c, qs[i]) }()
	}
	eventually(t, soon, "the questions to be in flight", func() error {
		if n := g.waiting(); n < len(callers) {
			return fmt.Errorf("%d of %d", n, len(callers))
		}
		return nil
	})
	return answered
}

// questions returns one question about each of n blocks.
func questions(blocks []block, n int) (qs []question) {
	for i := range n {
		qs = append(qs, question{block: &blocks[i]})
	}
	return qs
}

// TestWorkerLeaves ends a worker that owes answers, while another one is there.
func TestWorkerLeaves(t *testing.T) {
	_, with, _ := sepolia(t)
	n := startNode(t, "")
	g := startGate(t, n)
	f, key := startFleet(t, g.url, size{edges: 1, workers: 1})
	e, w := f.edges[0], f.workers[0]
	callers := []caller{f.httpCaller(e, true, key), f.mustWS(e, true, key), f.mustWS(e, false, key)}
	answered := held(t.Context(), t, g, callers, questions(with, len(callers)))

	other := f.startWorker(n.url)
	waitReady(t, other.process, other.admin)
	w.signal(syscall.SIGTERM)
	fresh := with[100:]
	eventually(t, soon, "the other worker to be asked", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		fresh = fresh[1:]
		return ask(ctx, f.httpCaller(e, false, key), question{block: &fresh[0]})
	})
	if !w.running() {
		t.Errorf("the worker ended and owed %d answers", g.waiting())
	}
	g.release()
	for i := range callers {
		if err := <-answered[i]; err != nil {
			t.Errorf("question %d, in flight when the worker was told to leave: %v", i, err)
		}
	}
	if code := w.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, q := range questions(with[50:], 20) {
		if err := ask(t.Context(), callers[0], q); err != nil {
			t.Errorf("after the worker has left: %v", err)
		}
	}
}

// TestEdgeLeaves ends an edge that owes answers.
func TestEdgeLeaves(t *testing.T) {
	_, with, _ := sepolia(t)
	g := startGate(t, startNode(t, ""))
	f, key := startFleet(t, g.url, size{edges: 1, workers: 1})
	e := f.edges[0]
	eventually(t, soon, "the key to be known", func() error {
		return ask(t.Context(), f.httpCaller(e, true, key), question{block: &with[0]})
	})
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()

	// Four clients wait for an answer, and two for nothing.
	names := []string{"HTTP", "HTTPS", "WS", "WSS"}
	callers := []caller{f.httpCaller(e, false, key), f.httpCaller(e, true, key), f.mustWS(e, false, key), f.mustWS(e, true, key)}
	idle := []*wsCaller{f.mustWS(e, false, key), f.mustWS(e, true, key)}
	answered := held(ctx, t, g, callers, questions(with[1:], len(callers)))

	e.signal(syscall.SIGTERM)
	for _, c := range idle {
		wantClose(ctx, t, "an idle WebSocket", c, websocket.StatusGoingAway)
	}
	for _, addr := range []string{e.http, e.https} {
		eventually(t, soon, "new connections to be refused", func() error {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				_ = c.Close()
				return errors.New("connected to " + addr)
			}
			return nil
		})
	}
	if status, body, err := e.get("/readyz"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("/readyz while answers are owed: %d %s %v, want 503", status, body, err)
	}
	g.release()
	for i, c := range callers {
		if err := <-answered[i]; err != nil {
			t.Errorf("%s: in flight when the edge was told to leave: %v", names[i], err)
		}
		if ws, ok := c.(*wsCaller); ok {
			wantClose(ctx, t, names[i]+" after its answer", ws, websocket.StatusGoingAway)
		}
	}
	if code := e.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// wantClose waits for the end of a WebSocket.
func wantClose(ctx context.Context, t *testing.T, what string, c *wsCaller, want websocket.StatusCode) {
	t.Helper()
	if got, err := c.closedWith(ctx); err != nil || got != want {
		t.Errorf("%s: closed with %d, %v, want %d", what, got, err, want)
	}
}
