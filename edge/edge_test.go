package edge_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/edge/certs"
	"github.com/ommer/ommer/edge/overload"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

const testKey = "test-key-0123456789"

// uncles is what is known: block n has the uncle "uncle n.0".
func uncles() map[schema.Question]string {
	known := map[schema.Question]string{}
	for n := range uint64(1001) {
		q := schema.Question{Block: schema.Number(n)}
		known[q] = fmt.Sprintf(`"uncle %v.0"`, q.Block)
	}
	return known
}

type edgeConfig = edge.Config

type fixture struct {
	*edge.Node
	resolver *schematest.Fixed
	keys     *keys.Directory
	roots    *x509.CertPool
	stop     func() // begins the stop
	done     chan error
}

func start(t testing.TB, change func(*edge.Config)) *fixture {
	t.Helper()
	dir, err := keys.NewDirectory(keys.DirectoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = dir.AddStatic(testKey); err != nil {
		t.Fatal(err)
	}
	config, roots := selfSigned(t)
	f := &fixture{resolver: schematest.NewFixed(uncles()), keys: dir, roots: roots, done: make(chan error, 1)}
	cfg := edge.Config{
		HTTPS: "127.0.0.1:0", HTTP: "127.0.0.1:0", TLS: config,
		Keys: dir, Resolver: f.resolver, Logger: slog.New(slog.DiscardHandler),
		Overload: overload.Limits{Off: true}, // what a slow machine would have it refuse is not what most tests ask for
	}
	if change != nil {
		change(&cfg)
	}
	if f.Node, err = edge.New(cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.ReusePort {
		if err := f.Listen(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go func() { f.done <- f.Run(ctx) }()
	t.Cleanup(func() {
		f.resolver.Stop()
		stop()
		if err := <-f.done; err != nil {
			t.Error(err)
		}
		dir.Close()
	})
	return f
}

// startEcho is start for a node that echoes.
func startEcho(t testing.TB) *fixture {
	t.Helper()
	config, roots := selfSigned(t)
	n, err := edge.NewEcho(edge.Config{
		HTTPS: "127.0.0.1:0", HTTP: "127.0.0.1:0", TLS: config, Logger: slog.New(slog.DiscardHandler),
		Limits: edge.Limits{Body: echoLimit, Message: echoLimit},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Node: n, roots: roots, done: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go func() { f.done <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-f.done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// selfSigned returns a server's TLS configuration and what a client has to trust.
func selfSigned(t testing.TB) (*tls.Config, *x509.CertPool) {
	t.Helper()
	pair, err := certs.SelfSigned(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store, err := certs.New(certs.Config{Pairs: []certs.Pair{pair}})
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(pair.Cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return store.TLS(), roots
}

// dial opens a raw connection, with TLS or without.
func (f *fixture) dial(t testing.TB, secure bool) net.Conn {
	t.Helper()
	var c net.Conn
	var err error
	if secure {
		c, err = tls.Dial("tcp", f.HTTPS().String(), &tls.Config{RootCAs: f.roots, ServerName: "localhost"})
	} else {
		c, err = net.Dial("tcp", f.HTTP().String())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

func post(key, body string) string {
	return fmt.Sprintf("POST /v3/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
}

func lookup(id, number int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x%x","0x0"]}`, id, number)
}

func answer(id, number int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"uncle 0x%x.0"}`, id, number)
}

// response reads one HTTP response.
func response(t testing.TB, r *bufio.Reader) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("reading a response: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func transports(t *testing.T, test func(t *testing.T, secure bool)) {
	t.Run("plain", func(t *testing.T) { test(t, false) })
	t.Run("TLS", func(t *testing.T) { test(t, true) })
}

func TestRequest(t *testing.T) {
	f := start(t, nil)
	transports(t, func(t *testing.T, secure bool) {
		c := f.dial(t, secure)
		r := bufio.NewReader(c)
		for i := range 3 { // keep-alive
			fmt.Fprint(c, post(testKey, lookup(i, 7)))
			resp, body := response(t, r)
			if resp.StatusCode != 200 || body != answer(i, 7) || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Date") == "" {
				t.Fatalf("%s %v %s", resp.Status, resp.Header, body)
			}
		}
	})
}

func TestPipelineLeavesInOrder(t *testing.T) {
	f := start(t, nil)
	transports(t, func(t *testing.T, secure bool) {
		const n = 100 // more than may wait at once
		f.resolver.Hold()
		c := f.dial(t, secure)
		var b strings.Builder
		for i := range n {
			b.WriteString(post(testKey, lookup(i, i)))
		}
		go io.WriteString(c, b.String())
		eventually(t, "a full pipeline", func() bool { return len(f.resolver.Waiting()) == 16 })
		f.resolver.Release()
		r := bufio.NewReader(c)
		for i := range n {
			if _, body := response(t, r); body != answer(i, i) {
				t.Fatalf("answer %d: %s", i, body)
			}
		}
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond) // between looks at the condition
	}
}

// steadily expects try to find nothing wrong, and has it try several times: a machine that
// stalls makes the test a client that is too slow.
func steadily(t *testing.T, try func() (wrong string)) {
	t.Helper()
	wrong := ""
	for range 10 {
		if wrong = try(); wrong == "" {
			return
		}
	}
	t.Error("each time: ", wrong)
}
