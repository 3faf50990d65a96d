//go:build e2e

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

// gate stands between workers and a node and can hold lookups back, so that a test
// decides how long they are in flight. Questions about the head of the chain pass,
// an edge's trial lookups among them.
type gate struct {
	url string

	mu    sync.Mutex
	held  int
	open  chan struct{} // closed while lookups pass
	takes time.Duration // and how long each takes at least
}

func startGate(tb testing.TB, n *node) *gate {
	tb.Helper()
	target, err := url.Parse(n.url)
	if err != nil {
		tb.Fatal(err)
	}
	g := &gate{open: make(chan struct{})}
	close(g.open)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if bytes.Contains(body, []byte("eth_getUncle")) && !bytes.Contains(body, []byte(`"latest"`)) && !g.pass(r, bytes.Count(body, []byte("eth_getBlockBy"))) {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	g.url = server.URL
	tb.Cleanup(func() {
		g.release()
		server.Close()
		transport.CloseIdleConnections()
	})
	return g
}

// pass waits until a number of lookups in one request pass. It is false when the asker has
// gone.
func (g *gate) pass(r *http.Request, lookups int) bool {
	g.mu.Lock()
	open, takes := g.open, g.takes
	g.held += lookups
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.held -= lookups
		g.mu.Unlock()
	}()
	select {
	case <-open:
	case <-r.Context().Done():
		return false
	}
	select {
	case <-time.After(takes):
		return true
	case <-r.Context().Done():
		return false
	}
}

// slow has each lookup take that long from now on.
func (g *gate) slow(takes time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takes = takes
}

// hold keeps lookups back from now on.
func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

// release lets them pass.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// waiting is how many lookups are being held.
func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}
