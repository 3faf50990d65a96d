package main

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ommer/ommer/deploy/load"
)

func TestCrowd(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.0/8 is one address elsewhere")
	}
	qs, answer := asked(3)
	e := answering(t, answer)
	sources := make(chan string, 100)
	for name, ws := range map[string]bool{"http": false, "ws": true} {
		t.Run(name, func(t *testing.T) {
			e := e
			e.WS = ws
			relay(t, &e, sources)
			opened := 0
			c, err := startCrowd(t.Context(), []holding{
				{Endpoint: e, Questions: qs, Conns: 5, Sources: []net.IP{net.IPv4(127, 0, 3, 1), net.IPv4(127, 0, 3, 2)}},
				{Endpoint: e, Questions: qs, Conns: 2, Sources: []net.IP{net.IPv4(127, 0, 3, 3)}},
			}, func(n int) { opened = n })
			if err != nil {
				t.Fatal(err)
			}
			if opened != 7 || c.open() != 7 {
				t.Errorf("%d, %d open, want 7", opened, c.open())
			}
			got := map[string]int{}
			for range 7 {
				got[<-sources]++
			}
			if got["127.0.3.1"] != 3 || got["127.0.3.2"] != 2 || got["127.0.3.3"] != 2 {
				t.Errorf("connections by source: %v", got)
			}
			for asked := 7; asked <= 14; asked += 7 {
				h, err := c.do(t.Context(), holdAsk)
				if err != nil || h.Answered != asked || h.Failed != 0 || h.Open != 7 || h.Problem != "" {
					t.Errorf("asked: %+v, %v", h, err)
				}
			}
			if rss, err := c.rss(); err != nil || rss < 1<<20 {
				t.Errorf("resident: %d, %v", rss, err)
			}
			if err := c.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// relay puts a listener that notes where connections come from before an endpoint.
func relay(t *testing.T, e *endpoint, sources chan<- string) {
	t.Helper()
	back := e.Addr
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.Addr = ln.Addr().String()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", back)
			if err != nil {
				t.Error(err)
				return
			}
			sources <- near.RemoteAddr().(*net.TCPAddr).IP.String()
			go both(near, far)
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-ended
	})
}

// both copies in both directions until one side ends.
func both(a, b net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = a.(*net.TCPConn).ReadFrom(b)
		_ = a.Close()
	}()
	_, _ = b.(*net.TCPConn).ReadFrom(a)
	_ = b.Close()
	<-done
}

// What is wrong when it is opened ends the crowd; what goes wrong later is counted.
func TestCrowdFails(t *testing.T) {
	qs, answer := asked(3)
	var served atomic.Int64
	e := answering(t, func(params string) string {
		if served.Add(1) > 3 {
			params = "[3]" // which has no hash
		}
		return answer(params)
	})
	e.WS = true
	what := []holding{{Endpoint: e, Questions: qs, Conns: 3}}
	c, err := startCrowd(t.Context(), what, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.do(t.Context(), holdAsk)
	if err != nil || h.Answered != 0 || h.Failed != 3 || !strings.Contains(h.Problem, "wrong answer") {
		t.Errorf("wrong answers: %+v, %v", h, err)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	if _, err := startCrowd(t.Context(), what, func(int) {}); !errors.Is(err, errMember) {
		t.Errorf("wrong at once: %v", err)
	}
}

// The end of the context ends the processes, whatever they wait for.
func TestCrowdIsStopped(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := silent.Accept(); err == nil {
			cancel() // somebody waits for an answer now
			defer c.Close()
		}
	}()
	e := endpoint{Addr: silent.Addr().String(), Path: "/"}
	qs, _ := asked(1)
	if _, err := startCrowd(ctx, []holding{{Endpoint: e, Questions: qs, Conns: 1}}, func(int) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Pings are answered while nobody asks, over TLS and without, and a connection that
// is lost meanwhile is noticed.
func TestPings(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs epoll")
	}
	for name, secure := range map[string]bool{"ws": false, "wss": true} {
		t.Run(name, func(t *testing.T) {
			qs, answer := asked(3)
			ponged, watched, hangUp := make(chan error, 100), make(chan struct{}), make(chan struct{})
			hangUpOnce := sync.OnceFunc(func() { close(hangUp) })
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, err := websocket.Accept(w, r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.CloseNow()
				_, body, err := c.Read(r.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if err = c.Write(r.Context(), websocket.MessageText, reply(t, body, answer)); err != nil {
					t.Error(err)
				}
				select {
				case <-watched:
				case <-hangUp:
					return
				}
				ctx := c.CloseRead(r.Context())
				for range 2 {
					ponged <- c.Ping(ctx)
				}
				<-hangUp
			}))
			e := endpoint{Path: "/", WS: true}
			if secure {
				s.StartTLS()
				e.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
			} else {
				s.Start()
			}
			e.Addr = s.Listener.Addr().String()
			defer s.Close()
			defer hangUpOnce()
			w, err := newWatch()
			if err != nil {
				t.Fatal(err)
			}
			conns, err := dialerTo(t, e, qs).DialAll(t.Context(), 3, w.add)
			if err != nil {
				t.Fatal(err)
			}
			close(watched)
			for range 6 {
				if err := <-ponged; err != nil {
					t.Error(err)
				}
			}
			if n, err := w.answered(); n != 6 || err != nil {
				t.Errorf("%d pings answered, %v, want 6", n, err)
			}
			hangUpOnce()
			for deadline := time.Now().Add(time.Minute); ; {
				if _, err := w.answered(); err != nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("lost connections are not noticed")
				}
				runtime.Gosched()
			}
			if err := w.stop(); err != nil {
				t.Error(err)
			}
			_ = load.CloseAll(conns) // the lost ones are closed
		})
	}
}
