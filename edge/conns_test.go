package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/schema"
)

// askUpgrade asks for a WebSocket on a connection.
func askUpgrade(t *testing.T, c net.Conn, key string) (*bufio.Reader, *http.Response, string) {
	t.Helper()
	fmt.Fprintf(c, "GET /ws/v3/%s HTTP/1.1\r\nHost: x\r\n%s\r\n", key, upgradeFields)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: "GET"})
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == 101 {
		return r, resp, ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, resp, string(body)
}

// opens opens WebSockets until one is refused, and returns those that are open.
func (k *keyed) opens(t *testing.T, secure bool, key string) (open []net.Conn) {
	t.Helper()
	for {
		c := k.dial(t, secure)
		_, resp, body := askUpgrade(t, c, key)
		if resp.StatusCode == 101 {
			open = append(open, c)
			continue
		}
		if want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"limit exceeded"`; resp.StatusCode != 429 ||
			!strings.HasPrefix(body, want) || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("refused with %s %v %s", resp.Status, resp.Header, body)
		}
		return open
	}
}

// maskedClose is a client's close frame with 1000.
const maskedClose = "\x88\x82\x00\x00\x00\x00\x03\xe8"

func TestConnsOfKey(t *testing.T) {
	registry := prometheus.NewRegistry()
	k := startKeyed(t, func(c *edge.Config) { c.Limits.ConnsPerKey, c.Registerer = 4, registry })
	transports(t, func(t *testing.T, secure bool) {
		key, id := k.create(t, keys.Settings{MaxConns: 3})
		usual, _ := k.create(t, keys.Settings{})
		entry := k.known.Lookup([]byte(key))
		refused := counted(t, registry, "ommer_edge_settings_rejections_total")
		open := k.opens(t, secure, key)
		if len(open) != 3 || entry.Conns() != 3 {
			t.Fatalf("%d were opened and %d counted, want 3", len(open), entry.Conns())
		}
		if n := len(k.opens(t, secure, usual)); n != 4 {
			t.Errorf("a key without settings has %d, want the edge's 4", n)
		}
		if n := counted(t, registry, "ommer_edge_settings_rejections_total") - refused; n != 2 {
			t.Errorf("%v refusals are counted, want 2", n)
		}
		c := k.dial(t, secure)
		io.WriteString(c, post(key, lookup(1, 1)))
		if _, body := response(t, bufio.NewReader(c)); body != answer(1, 1) {
			t.Errorf("a request is answered with %s", body)
		}

		// Whoever has seen the end of one may open another at once.
		for range 20 {
			io.WriteString(open[0], maskedClose)
			if got := frame(t, bufio.NewReader(open[0])); got != "\x88\x02\x03\xe8" {
				t.Fatalf("got %q, want the close frame back", got)
			}
			open[0] = k.dial(t, secure)
			if _, resp, _ := askUpgrade(t, open[0], key); resp.StatusCode != 101 {
				t.Fatalf("after one was closed: %s", resp.Status)
			}
		}

		// A lower number closes none, and lets none in before enough have left.
		k.set(t, id, func(s *keys.Settings) { s.MaxConns, s.Methods = 1, []string{schema.UncleByNumber.String()} })
		eventually(t, "the lower number", func() bool { return !entry.AllowsMethod(schema.UncleByHash) })
		for i, c := range open[1:] {
			c.Close()
			eventually(t, "one less", func() bool { return entry.Conns() == 2-i })
			if left := k.opens(t, secure, key); len(left) > 0 {
				t.Fatalf("one was let in beside %d", 2-i)
			}
		}
		io.WriteString(open[0], "\x89\x80\x00\x00\x00\x00") // a ping: it is still open
		if got := frame(t, bufio.NewReader(open[0])); got != "\x8a\x00" {
			t.Errorf("got %q, want a pong", got)
		}
		k.set(t, id, func(s *keys.Settings) { *s = keys.Settings{} })
		eventually(t, "the edge's own number", func() bool { return entry.AllowsMethod(schema.UncleByHash) })
		if n := len(k.opens(t, secure, key)); n != 3 {
			t.Errorf("%d more were opened, want 3", n)
		}
		if _, err := k.registry.Revoke(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		eventually(t, "none to be open", func() bool { return entry.Conns() == 0 })
	})
}

// TestConnsOfKeyLeakNothing ends WebSockets in every way, thousands of times, some of
// them in their handshake. What is counted is never more than there may be, and
// nothing in the end.
func TestConnsOfKeyLeakNothing(t *testing.T) {
	t.Parallel()
	const clients, each, most = 32, 75, 8
	k := startKeyed(t, func(c *edge.Config) { c.Timeouts.Header, c.Timeouts.Body = 20*time.Millisecond, 20*time.Millisecond })
	key, _ := k.create(t, keys.Settings{MaxConns: most})
	entry := k.known.Lookup([]byte(key))
	request := fmt.Sprintf("GET /ws/v3/%s HTTP/1.1\r\nHost: x\r\n%s\r\n", key, upgradeFields)
	batch, _ := batchFrom(0, 500)
	ends := []func(c net.Conn){
		func(net.Conn) {},
		func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
		func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite(); _, _ = io.Copy(io.Discard, c) },
		func(c net.Conn) { _, _ = io.WriteString(c, maskedClose); _, _ = io.Copy(io.Discard, c) },
		func(c net.Conn) { _, _ = io.WriteString(c, "\x81\x02{}"); _, _ = io.Copy(io.Discard, c) }, // not masked
		func(c net.Conn) {
			_, _ = io.WriteString(c, "\x82\xfe"+string([]byte{byte(len(batch) >> 8), byte(len(batch))})+"\x00\x00\x00\x00"+batch)
		},
	}
	var wg sync.WaitGroup
	over := make(chan int, clients)
	for range clients {
		wg.Go(func() {
			for range each {
				c, err := net.Dial("tcp", k.HTTP().String())
				if err != nil {
					t.Error(err)
					return
				}
				switch rand.IntN(4) {
				case 0: // before it was asked for as a whole
					_, _ = io.WriteString(c, request[:rand.IntN(len(request))])
				case 1: // before it is answered
					_, _ = io.WriteString(c, request)
				default:
					_, _ = io.WriteString(c, request)
					_, _ = c.Read(make([]byte, 512))
				}
				if n := entry.Conns(); n < 0 || n > most {
					over <- n
					return
				}
				ends[rand.IntN(len(ends))](c)
				c.Close()
			}
		})
	}
	wg.Wait()
	if len(over) > 0 {
		t.Errorf("%d were counted, want 0 to %d", <-over, most)
	}
	eventually(t, "none to be open", func() bool { return entry.Conns() == 0 && entry.Lookups.Load() == 0 })
	if n := len(k.opens(t, false, key)); n != most {
		t.Errorf("%d can be opened, want %d", n, most)
	}
}
