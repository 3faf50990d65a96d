//go:build e2e && linux

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// plainCaller asks over HTTP/1.1 as simply as can be: nothing is tried again. It
// connects anew for each request, or when the last answer said Connection: close.
type plainCaller struct {
	addr, key string
	tls       *tls.Config // nil: none
	keep      bool        // use a connection again
	conn      net.Conn    // nil: none is open
	r         *bufio.Reader
	opened    *atomic.Int64
}

func (c *plainCaller) call(ctx context.Context, message []byte) ([]byte, error) {
	if c.conn == nil {
		if err := c.connect(ctx); err != nil {
			return nil, fmt.Errorf("connecting: %w", err)
		}
	}
	body, last, err := c.ask(ctx, message)
	if err != nil || last || !c.keep {
		_ = c.conn.Close() // it has served
		c.conn = nil
	}
	return body, err
}

func (c *plainCaller) connect(ctx context.Context) (err error) {
	if c.tls != nil {
		c.conn, err = (&tls.Dialer{Config: c.tls}).DialContext(ctx, "tcp", c.addr)
	} else {
		c.conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", c.addr)
	}
	if err != nil {
		c.conn = nil
		return err
	}
	c.opened.Add(1)
	c.r = bufio.NewReader(c.conn)
	return nil
}

func (c *plainCaller) ask(ctx context.Context, message []byte) (body []byte, last bool, err error) {
	if end, ok := ctx.Deadline(); ok {
		_ = c.conn.SetDeadline(end) // fails for a closed connection, as Write will
	}
	_, err = fmt.Fprintf(c.conn, "POST /v3/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		c.key, len(message), message)
	if err != nil {
		return nil, false, fmt.Errorf("sending: %w", err)
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return nil, false, fmt.Errorf("receiving: %w", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = &statusError{resp.StatusCode, string(body)}
	}
	return body, resp.Close, err
}

// movingCaller asks over WebSockets. When one is closed with 1001 instead of an
// answer it asks on a new one.
type movingCaller struct {
	dial  func(context.Context) (*wsCaller, error)
	ws    *wsCaller
	moved *atomic.Int64
}

func (c *movingCaller) call(ctx context.Context, message []byte) ([]byte, error) {
	for {
		answer, err := c.ws.call(ctx, message)
		if err == nil {
			return answer, nil
		}
		if websocket.CloseStatus(err) != websocket.StatusGoingAway {
			return nil, fmt.Errorf("WebSocket: %w", err)
		}
		next, err := c.dial(ctx)
		if err != nil {
			return nil, fmt.Errorf("opening another WebSocket: %w", err)
		}
		c.ws = next
		c.moved.Add(1)
	}
}

// TestTakeover replaces the edges behind one address again and again, under load.
func TestTakeover(t *testing.T) {
	const takeovers, generation, each = 5, 2, 4
	_, with, _ := sepolia(t)
	f, key := startFleet(t, startNode(t, "").url, size{workers: 1})
	httpsAddr, httpAddr := freeAddr(t), freeAddr(t)
	begin := func() (edges []*edge) {
		for range generation {
			edges = append(edges, f.startEdgeAt(httpsAddr, httpAddr, "--reuseport", "--limit-conns-per-addr", "10000"))
		}
		for _, e := range edges {
			waitReady(t, e.process, e.admin)
		}
		return edges
	}
	old := begin()
	first := old[0] // its addresses are those of all
	all := learn(t, f.httpCaller(first, false, key), with)

	var connections, moved atomic.Int64
	config := f.tls()
	config.ServerName = "localhost"
	var callers []caller
	for range each {
		for _, keep := range []bool{false, true} {
			callers = append(callers,
				&plainCaller{addr: httpAddr, key: key, keep: keep, opened: &connections},
				&plainCaller{addr: httpsAddr, key: key, keep: keep, opened: &connections, tls: config})
		}
		for _, secure := range []bool{false, true} {
			dial := func(ctx context.Context) (*wsCaller, error) { return f.wsCaller(ctx, first, secure, key) }
			callers = append(callers, &movingCaller{dial: dial, ws: f.mustWS(first, secure, key), moved: &moved})
		}
	}
	t.Cleanup(func() {
		for _, c := range callers {
			switch c := c.(type) {
			case *plainCaller:
				if c.conn != nil {
					_ = c.conn.Close()
				}
			case *movingCaller:
				_ = c.ws.conn.CloseNow()
			}
		}
	})
	l := startLoad(t, all, callers)
	l.more(1000)
	for range takeovers {
		next := begin()
		l.more(1000)
		stopping := time.Now()
		for _, e := range old {
			e.signal(syscall.SIGTERM)
		}
		for _, e := range old {
			if code := e.wait(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		}
		t.Logf("two edges left in %v", time.Since(stopping).Round(10*time.Millisecond))
		old = next
		l.more(1000)
	}
	l.end()
	none(t, l)
	if n := moved.Load(); n < each {
		t.Errorf("%d WebSockets were closed with 1001, want all of %d again and again", n, 2*each)
	}
	t.Logf("%d takeovers: %d HTTP connections were opened, %d WebSockets moved", takeovers, connections.Load(), moved.Load())
}

// TestSharedPort is about who may listen at an address, and when.
func TestSharedPort(t *testing.T) {
	_, with, _ := sepolia(t)
	f, key := startFleet(t, startNode(t, "").url, size{workers: 1})
	httpsAddr, httpAddr := freeAddr(t), freeAddr(t)
	cut := f.startEdgeAt(httpsAddr, httpAddr, "--reuseport", "--network", "nowhere")
	eventually(t, soon, "the edge without workers to say what is missing", func() error {
		_, body, err := cut.get("/readyz")
		if err == nil && !(strings.Contains(body, `"keys":"ok"`) && strings.Contains(body, `"listeners":"not bound`)) {
			err = errors.New(body)
		}
		return err
	})
	first := f.startEdgeAt(httpsAddr, httpAddr, "--reuseport")
	waitReady(t, first.process, first.admin)
	for range 50 { // half of them would go to the other if it listened
		c := &plainCaller{addr: httpAddr, key: key, opened: new(atomic.Int64)}
		if err := ask(t.Context(), c, question{block: &with[0]}); err != nil {
			t.Fatalf("beside an edge that is not ready: %v", err)
		}
	}
	if code := cut.stop(); code != 0 {
		t.Errorf("exit code %d of an edge that never was ready, want 0", code)
	}
	alone := f.startEdgeAt(httpsAddr, httpAddr)
	if code := alone.wait(); code == 0 {
		t.Error("exit code 0 where the address is in use")
	}
	if _, log := alone.output(); !strings.Contains(log, "address already in use") || !strings.Contains(log, "--reuseport") {
		t.Errorf("the log does not say that --reuseport may help: %s", log)
	}
}
