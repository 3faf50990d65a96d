package edge_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/schema"
)

// open opens a WebSocket with a client of another make.
func (f *fixture) open(t *testing.T, secure bool) *websocket.Conn {
	t.Helper()
	url, transport := fmt.Sprintf("ws://%s/ws/v3/%s", f.HTTP(), testKey), &http.Transport{}
	if secure {
		url = fmt.Sprintf("wss://%s/ws/v3/%s", f.HTTPS(), testKey)
		transport.TLSClientConfig = &tls.Config{RootCAs: f.roots}
	}
	c, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(-1)
	t.Cleanup(func() { c.CloseNow(); transport.CloseIdleConnections() })
	return c
}

func send(t *testing.T, c *websocket.Conn, message string) {
	t.Helper()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c *websocket.Conn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kind, message, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if kind != websocket.MessageText {
		t.Errorf("answered with %v", kind)
	}
	return string(message)
}

func receiveClose(t *testing.T, c *websocket.Conn) websocket.StatusCode {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if _, _, err := c.Read(ctx); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func TestWebSocket(t *testing.T) {
	f := start(t, nil)
	transports(t, func(t *testing.T, secure bool) {
		c := f.open(t, secure)
		send(t, c, lookup(1, 3))
		if got := receive(t, c); got != answer(1, 3) {
			t.Error(got)
		}
		// These are silent: what comes next is the answer to the last.
		send(t, c, "")
		send(t, c, " ")
		send(t, c, `{"jsonrpc":"2.0","method":"eth_nope"}`)
		send(t, c, `{"jsonrpc":`)
		if got := receive(t, c); !strings.Contains(got, "parse error") {
			t.Error(got)
		}
		if err := c.Write(t.Context(), websocket.MessageBinary, []byte("["+lookup(2, 4)+"]")); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, c); got != "["+answer(2, 4)+"]" {
			t.Error(got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ctx = c.CloseRead(ctx)
		if err := c.Ping(ctx); err != nil {
			t.Errorf("ping: %v", err)
		}
	})
}

func TestWebSocketAnswersAsTheyCome(t *testing.T) {
	f := start(t, nil)
	c := f.open(t, true)
	f.resolver.Hold()
	for i := range 3 {
		send(t, c, lookup(i, i))
	}
	eventually(t, "three questions", func() bool { return len(f.resolver.Waiting()) == 3 })
	for i := 2; i >= 0; i-- { // the last one first
		f.resolver.ReleaseOne(schema.Question{Block: schema.Number(uint64(i))})
	}
	var got []string
	for range 3 {
		got = append(got, receive(t, c))
	}
	if want := []string{answer(2, 2), answer(1, 1), answer(0, 0)}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWebSocketInFlightLimit(t *testing.T) {
	f := start(t, func(c *edge.Config) { c.Limits.InFlight = 2 })
	c := f.open(t, false)
	f.resolver.Hold()
	send(t, c, "["+lookup(1, 1)+","+lookup(2, 2)+"]")
	send(t, c, lookup(3, 3))
	if got, want := receive(t, c), `{"jsonrpc":"2.0","id":3,"error":{"code":-32005,"message":"too many requests in flight"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	f.resolver.Release()
	if got, want := receive(t, c), "["+answer(1, 1)+","+answer(2, 2)+"]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	send(t, c, lookup(4, 4))
	if got := receive(t, c); got != answer(4, 4) {
		t.Error(got)
	}
}

func TestWebSocketCloses(t *testing.T) {
	f := start(t, func(c *edge.Config) { c.Limits.Message = 100 })
	for _, tt := range []struct {
		name string
		send func(c *websocket.Conn)
		want websocket.StatusCode
	}{
		{"too big", func(c *websocket.Conn) { send(t, c, strings.Repeat(" ", 101)) }, websocket.StatusMessageTooBig},
		{"not UTF-8", func(c *websocket.Conn) { send(t, c, "\xff") }, websocket.StatusInvalidFramePayloadData},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.open(t, true)
			tt.send(c)
			if got := receiveClose(t, c); got != tt.want {
				t.Errorf("closed with %v, want %v", got, tt.want)
			}
		})
	}
	t.Run("unmasked", func(t *testing.T) {
		c, r := f.upgrade(t)
		c.Write([]byte{0x81, 2, '{', '}'})
		if got := frame(t, r); !strings.HasPrefix(got[2:], "\x03\xea") {
			t.Errorf("got %q, want a close frame with 1002", got)
		}
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("the connection stays: %v", err)
		}
	})
	t.Run("client closes", func(t *testing.T) {
		c, r := f.upgrade(t)
		c.Write([]byte{0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8})
		if got := frame(t, r); got != "\x88\x02\x03\xe8" {
			t.Errorf("got %q, want the close frame back", got)
		}
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("the connection stays: %v", err)
		}
	})
}

// upgrade opens a WebSocket whose frames the test writes itself.
func (f *fixture) upgrade(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := f.dial(t, false)
	fmt.Fprintf(c, "GET /ws/v3/%s HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", testKey)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: "GET"})
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	return c, r
}

// frame reads one short frame as it is.
func frame(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, head[1]&0x7f)
	if _, err := io.ReadFull(r, rest); err != nil {
		t.Fatal(err)
	}
	return string(head) + string(rest)
}

func TestWebSocketPings(t *testing.T) {
	t.Parallel()
	f := start(t, func(c *edge.Config) { c.Timeouts.Ping = 300 * time.Millisecond })
	steadily(t, func() (wrong string) {
		c, r := f.upgrade(t)
		if got := frame(t, r); got != "\x89\x00" {
			return fmt.Sprintf("got %q, want a ping", got)
		}
		c.Write([]byte{0x8a, 0x80, 0, 0, 0, 0}) // pong
		if got := frame(t, r); got != "\x89\x00" {
			return fmt.Sprintf("got %q, want another ping", got)
		}
		if got := frame(t, r); !strings.HasPrefix(got[2:], "\x03\xe9") {
			return fmt.Sprintf("got %q, want a close frame with 1001", got)
		}
		if _, err := r.ReadByte(); err != io.EOF {
			return fmt.Sprintf("the connection stays: %v", err)
		}
		return ""
	})
}

func TestWebSocketMessageTimeout(t *testing.T) {
	t.Parallel()
	f := start(t, func(c *edge.Config) { c.Timeouts.Body = 300 * time.Millisecond })
	for name, part := range map[string]string{
		"half a header":   "\x81",
		"half a frame":    "\x81\x85\x00\x00\x00\x00{",
		"one fragment":    "\x01\x81\x00\x00\x00\x00{",
		"a whole one too": "\x81\x81\x00\x00\x00\x00 \x81",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, r := f.upgrade(t)
			io.WriteString(c, part)
			stop := make(chan struct{})
			defer close(stop)
			go func() { // bytes that come now and then change nothing
				tick := time.NewTicker(50 * time.Millisecond)
				defer tick.Stop()
				for name == "one fragment" {
					select {
					case <-tick.C:
						io.WriteString(c, "\x00\x80\x00\x00\x00\x00")
					case <-stop:
						return
					}
				}
			}()
			if got := frame(t, r); !strings.HasPrefix(got[2:], "\x03\xf0") {
				t.Errorf("got %q, want a close frame with 1008", got)
			}
		})
	}
}

// value reads one metric that has no labels.
func value(t *testing.T, from prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// What is answered without a lookup must not pile up: each answer leaves or stops
// the reading.
func TestWebSocketFloodOfErrors(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := start(t, func(c *edge.Config) { c.Registerer = registry })
	c, r := f.upgrade(t)
	const n = 100_000
	go io.WriteString(c, strings.Repeat("\x81\x81\x00\x00\x00\x00{", n))
	var before, after runtime.MemStats
	runtime.GC() // what is garbage, of the polls below too, does not count
	runtime.ReadMemStats(&before)
	eventually(t, "the pause", func() bool { return value(t, registry, "ommer_nio_unwritten_bytes") > 0 })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the heap has grown by %d KiB", grown>>10)
	}
	for i := range n {
		if got := frame(t, r); !strings.Contains(got, "parse error") {
			t.Fatalf("answer %d: %q", i, got)
		}
	}
}

func TestWebSocketStop(t *testing.T) {
	f := start(t, nil)
	idle, busy := f.open(t, false), f.open(t, true)
	f.resolver.Hold()
	send(t, busy, lookup(1, 1))
	eventually(t, "the question", func() bool { return len(f.resolver.Waiting()) == 1 })
	f.stop()
	if got := receiveClose(t, idle); got != websocket.StatusGoingAway {
		t.Errorf("idle: closed with %v, want 1001", got)
	}
	f.resolver.Release()
	if got := receive(t, busy); got != answer(1, 1) {
		t.Error(got)
	}
	if got := receiveClose(t, busy); got != websocket.StatusGoingAway {
		t.Errorf("busy: closed with %v, want 1001", got)
	}
}
