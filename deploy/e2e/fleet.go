//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ommer/ommer/deploy/devnode"
)

// network is what the fleets call the chain, whichever it is.
const network = "e2e"

// fleet is a NATS server and the edges and workers on it. A new one is empty:
// tests start what they need in the order they need.
type fleet struct {
	tb        testing.TB
	certs     *certificates
	natsAddr  string
	natsStore string
	nats      *process
	edges     []*edge
	workers   []*worker
}

// edge is a running ommer-edge.
type edge struct {
	*process
	admin
	https, http string
}

// named is the host and port of its HTTPS, the host by its name.
func (e *edge) named(tb testing.TB) string {
	tb.Helper()
	_, port, err := net.SplitHostPort(e.https)
	if err != nil {
		tb.Fatal(err)
	}
	return net.JoinHostPort("localhost", port)
}

// worker is a running ommer-worker.
type worker struct {
	*process
	admin
}

func newFleet(tb testing.TB) *fleet {
	tb.Helper()
	return &fleet{tb: tb, certs: newCertificates(tb), natsAddr: freeAddr(tb), natsStore: tb.TempDir()}
}

func (f *fleet) natsURL() string { return "nats://" + f.natsAddr }

// startNATS starts the server, or starts it again on the same address and store,
// and waits until it takes connections.
func (f *fleet) startNATS(args ...string) {
	f.tb.Helper()
	host, port, err := net.SplitHostPort(f.natsAddr)
	if err != nil {
		f.tb.Fatal(err)
	}
	f.nats = start(f.tb, "nats-server", "nats-server",
		append([]string{"--addr", host, "--port", port, "--jetstream", "--store_dir", f.natsStore}, args...)...)
	eventually(f.tb, soon, "nats-server to listen", func() error {
		c, err := net.Dial("tcp", f.natsAddr)
		if err == nil {
			_ = c.Close() // it was only to see
		}
		return err
	})
}

// startEdge starts an edge and does not wait for it.
func (f *fleet) startEdge(args ...string) *edge {
	f.tb.Helper()
	return f.startEdgeAt(freeAddr(f.tb), freeAddr(f.tb), args...)
}

// startEdgeAt is startEdge with the addresses for HTTPS and HTTP.
func (f *fleet) startEdgeAt(https, http string, args ...string) *edge {
	f.tb.Helper()
	e := &edge{https: https, http: http, admin: admin(freeAddr(f.tb))}
	name := fmt.Sprintf("edge-%d", len(f.edges))
	e.process = start(f.tb, name, "ommer-edge", append([]string{
		"--name", name, "--network", network, "--nats", f.natsURL(), "--admin", string(e.admin),
		"--https", e.https, "--tls-cert", f.certs.certFile, "--tls-key", f.certs.keyFile, "--http", e.http,
	}, args...)...)
	f.edges = append(f.edges, e)
	return e
}

// startWorker starts a worker and does not wait for it. Without an upstream the
// arguments have to say what it answers from.
func (f *fleet) startWorker(upstream string, args ...string) *worker {
	f.tb.Helper()
	if upstream != "" {
		args = append([]string{"--upstream", upstream}, args...)
	}
	w := &worker{admin: admin(freeAddr(f.tb))}
	name := fmt.Sprintf("worker-%d", len(f.workers))
	w.process = start(f.tb, name, "ommer-worker", append([]string{
		"--name", name, "--network", network, "--nats", f.natsURL(), "--admin", string(w.admin),
	}, args...)...)
	f.workers = append(f.workers, w)
	return w
}

// waitReady waits until every edge and worker that runs is ready.
func (f *fleet) waitReady() {
	f.tb.Helper()
	for _, w := range f.workers {
		if w.running() {
			waitReady(f.tb, w.process, w.admin)
		}
	}
	for _, e := range f.edges {
		if e.running() {
			waitReady(f.tb, e.process, e.admin)
		}
	}
}

// size is how many of each a fleet is started with.
type size struct {
	edges, workers       int
	edgeArgs, workerArgs []string
}

// startFleet starts a whole fleet, waits until it is ready, and makes a key.
func startFleet(tb testing.TB, upstream string, s size) (f *fleet, key string) {
	tb.Helper()
	f = newFleet(tb)
	f.startNATS()
	key = f.createKey("fleet")
	for range s.workers {
		f.startWorker(upstream, s.workerArgs...)
	}
	for range s.edges {
		f.startEdge(s.edgeArgs...)
	}
	f.waitReady()
	return f, key
}

// keys runs one of the commands `ommer keys`.
func (f *fleet) keys(args ...string) (stdout, stderr string, code int) {
	f.tb.Helper()
	return run(f.tb, "ommer", append(append([]string{"keys"}, args...), "--nats", f.natsURL())...)
}

// createKey makes a key, with settings if there are any. Edges know it soon after.
func (f *fleet) createKey(name string, settings ...string) string {
	f.tb.Helper()
	stdout, stderr, code := f.keys(append([]string{"create", "--name", name}, settings...)...)
	lines := strings.Split(strings.TrimRight(stdout, "\n"), "\n")
	key := lines[len(lines)-1]
	if code != 0 || key == "" {
		f.tb.Fatalf("ommer keys create: exit code %d, %s", code, stderr)
	}
	return key
}

// logs returns everything that every process of the fleet has written.
func (f *fleet) logs() map[string]string {
	f.tb.Helper()
	all := map[string]string{}
	add := func(p *process) {
		out, log := p.output()
		all[p.name] = out + log
	}
	add(f.nats)
	for _, e := range f.edges {
		add(e.process)
	}
	for _, w := range f.workers {
		add(w.process)
	}
	return all
}

// httpCaller returns a client of e that keeps its connections to itself.
func (f *fleet) httpCaller(e *edge, secure bool, key string) *httpCaller {
	url := "http://" + e.http
	if secure {
		url = "https://" + e.https
	}
	transport := &http.Transport{TLSClientConfig: f.tls(), MaxIdleConnsPerHost: 4}
	f.tb.Cleanup(transport.CloseIdleConnections)
	return &httpCaller{http: &http.Client{Transport: transport}, url: url + "/v3/" + key}
}

// wsCaller opens a WebSocket to e.
func (f *fleet) wsCaller(ctx context.Context, e *edge, secure bool, key string) (*wsCaller, error) {
	url := "ws://" + e.http
	if secure {
		url = "wss://" + e.https
	}
	return dialWS(ctx, url+"/ws/v3/"+key, f.tls())
}

// mustWS is wsCaller until the test ends.
func (f *fleet) mustWS(e *edge, secure bool, key string) *wsCaller {
	f.tb.Helper()
	c, err := f.wsCaller(f.tb.Context(), e, secure, key)
	if err != nil {
		f.tb.Fatal(err)
	}
	f.tb.Cleanup(func() { _ = c.conn.CloseNow() }) // it may have ended
	return c
}

func (f *fleet) tls() *tls.Config { return &tls.Config{RootCAs: f.certs.roots} }

// node is a development node in this process, until it is stopped or the test
// ends.
type node struct {
	tb   testing.TB
	url  string
	stop func()
}

// startNode serves the real blocks, on any address if addr is empty.
func startNode(tb testing.TB, addr string) *node {
	tb.Helper()
	path, err := sepoliaFile()
	if err != nil {
		tb.Fatal(err)
	}
	n, err := devnode.New(devnode.Config{Blocks: filepath.Clean(path), Addr: addr, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := n.Run(ctx); err != nil {
			tb.Errorf("devnode: %v", err)
		}
	}()
	stop := func() { cancel(); <-ended }
	tb.Cleanup(stop)
	return &node{tb: tb, url: n.URL(), stop: stop}
}

// addr is the host and port of the node.
func (n *node) addr() string { return strings.TrimPrefix(n.url, "http://") }
