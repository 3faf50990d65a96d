//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// says waits until a process is not ready and says why, with all of the words.
func says(t *testing.T, p *process, a admin, words ...string) {
	t.Helper()
	eventually(t, soon, p.name+" to say what is missing", func() error {
		err := a.ready()
		if err == nil {
			return errors.New("it is ready")
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				return fmt.Errorf("no %q in: %w", w, err)
			}
		}
		return nil
	})
}

// rightAgain waits until a question is answered right.
func rightAgain(t *testing.T, what string, c caller, q question) {
	t.Helper()
	began := time.Now()
	eventually(t, soon, what, func() error { return ask(t.Context(), c, q) })
	t.Logf("%s after %v", what, time.Since(began).Round(time.Millisecond))
}

// wantError asks and wants that JSON-RPC error within the time.
func wantError(t *testing.T, c caller, q question, within time.Duration, code int, message string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	began := time.Now()
	err := ask(ctx, c, q)
	e, ok := errors.AsType[*rpcError](err)
	if !ok || e.Code != code || e.Message != message {
		t.Errorf("got %v, want error %d, %s", err, code, message)
	}
	t.Logf("%v, after %v", err, time.Since(began).Round(time.Millisecond))
}

// TestStartBeforeNATS starts everything in the wrong order.
func TestStartBeforeNATS(t *testing.T) {
	_, with, _ := sepolia(t)
	f := newFleet(t)
	n := startNode(t, "")
	e, w := f.startEdge(), f.startWorker(n.url)
	says(t, e.process, e.admin, "503", "NATS", f.natsAddr, "refused")
	says(t, w.process, w.admin, "503", "NATS", f.natsAddr, "refused")

	f.startNATS()
	waitReady(t, w.process, w.admin)
	says(t, e.process, e.admin, "503", "creating a key")
	key := f.createKey("late")
	waitReady(t, e.process, e.admin)
	rightAgain(t, "the first answer", f.httpCaller(e, true, key), question{block: &with[0]})

	// The log has said it once per connection, however often that was tried: where
	// and why.
	const links = 2
	for _, p := range []*process{e.process, w.process} {
		_, log := p.output()
		if n := strings.Count(log, "bus cannot be reached"); n < 1 || n > links {
			t.Errorf("%s: %d lines say that the bus cannot be reached, want 1 to %d:\n%s", p.name, n, links, log)
		}
		for line := range strings.Lines(log) {
			if strings.Contains(line, "bus cannot be reached") && !(strings.Contains(line, f.natsAddr) && strings.Contains(line, "refused")) {
				t.Errorf("%s: no address or no reason in: %s", p.name, line)
			}
			if strings.Contains(line, "level=ERROR") {
				t.Errorf("%s: waiting is no error: %s", p.name, line)
			}
		}
	}
}

// TestNATSRestart takes the NATS server away, politely and not, and brings it back.
func TestNATSRestart(t *testing.T) {
	_, with, _ := sepolia(t)
	f, key := startFleet(t, startNode(t, "").url, size{edges: 1, workers: 1})
	e, w := f.edges[0], f.workers[0]
	overHTTP, overWS := f.httpCaller(e, true, key), f.mustWS(e, true, key)
	for i, away := range []struct {
		name string
		do   func()
	}{
		{"SIGTERM", func() { f.nats.stop() }},
		{"kill -9", func() { f.nats.kill() }},
	} {
		t.Run(away.name, func(t *testing.T) {
			rightAgain(t, "an answer", overHTTP, question{block: &with[2*i]})
			away.do()
			says(t, e.process, e.admin, "503", "NATS")
			says(t, w.process, w.admin, "503", "NATS")
			wantError(t, overHTTP, question{block: &with[2*i]}, 9*time.Second, -32603, "internal error")

			f.startNATS()
			rightAgain(t, "an answer over HTTPS", overHTTP, question{block: &with[2*i+1]})
			rightAgain(t, "an answer over the same WebSocket", overWS, question{block: &with[2*i+1]})
			f.waitReady()
		})
	}
}

// TestUpstreamRestart takes the only upstream node away and brings it back on its
// address.
func TestUpstreamRestart(t *testing.T) {
	_, with, _ := sepolia(t)
	const lookup = 3 * time.Second
	n := startNode(t, "")
	f, key := startFleet(t, n.url, size{edges: 1, workers: 1, edgeArgs: []string{"--timeout-lookup", lookup.String()}})
	e, w := f.edges[0], f.workers[0]
	c := f.httpCaller(e, true, key)
	asked := question{block: &with[0], byHash: true}
	rightAgain(t, "an answer", c, asked)

	n.stop()
	says(t, w.process, w.admin, "503", "upstream")
	says(t, e.process, e.admin, "503", "lookup")
	for i := range 3 {
		wantError(t, c, question{block: &with[1+i]}, 2*lookup, -32002, "request timed out")
	}
	// What is known by its hash cannot change.
	if err := ask(t.Context(), c, asked); err != nil {
		t.Errorf("asked before, while the upstream is down: %v", err)
	}

	startNode(t, n.addr())
	for i := range 3 {
		rightAgain(t, "an answer", c, question{block: &with[1+i]})
	}
	f.waitReady()
}

// TestNoWorkers asks an edge that has nobody to ask.
func TestNoWorkers(t *testing.T) {
	_, with, _ := sepolia(t)
	f := newFleet(t)
	f.startNATS()
	key := f.createKey("alone")
	e := f.startEdge()
	says(t, e.process, e.admin, "503", "lookup", "no-workers")
	c := f.httpCaller(e, true, key)
	wantError(t, c, question{block: &with[0]}, 3*time.Second, -32603, "internal error")

	f.startWorker(startNode(t, "").url)
	rightAgain(t, "an answer", c, question{block: &with[0]})
	f.waitReady()
}
