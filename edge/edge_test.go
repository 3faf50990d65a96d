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
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "test-key-0123456789"

// held is a Resolver that answers block n, index i with "uncle n.i" at once, or
// keeps the answers back until it is told to let go.
type held struct {
	mu      sync.Mutex
	holding bool
	waiting []func()
	asked   int
}

func (h *held) Resolve(q schema.Question, _ time.Time, to schema.Receiver) {
	answer := schema.Answer{Result: fmt.Appendf(nil, `"uncle %v.%d"`, q.Block, q.Index)}
	h.mu.Lock()
	h.asked++
	if h.holding {
		h.waiting = append(h.waiting, func() { to.Answered(answer) })
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	to.Answered(answer)
}

func (h *held) hold() { h.mu.Lock(); h.holding = true; h.mu.Unlock() }

// letGo delivers what is kept, last asked first, and keeps no more.
func (h *held) letGo() {
	h.mu.Lock()
	waiting := h.waiting
	h.holding, h.waiting = false, nil
	h.mu.Unlock()
	for i := len(waiting) - 1; i >= 0; i-- {
		waiting[i]()
	}
}

func (h *held) kept() int { h.mu.Lock(); defer h.mu.Unlock(); return len(h.waiting) }

type edgeConfig = edge.Config

type fixture struct {
	*edge.Node
	resolver *held
	keys     *keys.Directory
	roots    *x509.CertPool
	stop     func() // begins the stop
	done     chan error
}

func start(t *testing.T, change func(*edge.Config)) *fixture {
	t.Helper()
	dir, err := keys.NewDirectory(keys.DirectoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = dir.AddStatic(testKey); err != nil {
		t.Fatal(err)
	}
	config, certFile, err := edge.SelfSignedTLS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{resolver: &held{}, keys: dir, roots: x509.NewCertPool(), done: make(chan error, 1)}
	f.roots.AppendCertsFromPEM(pem)
	cfg := edge.Config{
		HTTPS: "127.0.0.1:0", HTTP: "127.0.0.1:0", TLS: config,
		Keys: dir, Resolver: f.resolver, Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	if f.Node, err = edge.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go func() { f.done <- f.Run(ctx) }()
	t.Cleanup(func() {
		f.resolver.letGo()
		stop()
		if err := <-f.done; err != nil {
			t.Error(err)
		}
		dir.Close()
	})
	return f
}

// dial opens a raw connection, with TLS or without.
func (f *fixture) dial(t *testing.T, secure bool) net.Conn {
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
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
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
func response(t *testing.T, r *bufio.Reader) (*http.Response, string) {
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
		f.resolver.hold()
		c := f.dial(t, secure)
		var b strings.Builder
		for i := range n {
			b.WriteString(post(testKey, lookup(i, i)))
		}
		go io.WriteString(c, b.String())
		eventually(t, "a full pipeline", func() bool { return f.resolver.kept() == 16 })
		f.resolver.letGo()
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
	for end := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond) // between looks at the condition
	}
}
