package nio

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// hello is a client's first message, so short that crypto/tls reads it at once.
var hello = sync.OnceValue(func() []byte {
	var h hearer
	cfg := clientTLS(tls.VersionTLS13)
	cfg.CurvePreferences = []tls.CurveID{tls.X25519}
	_ = tls.Client(&h, cfg).Handshake() // nobody answers
	return h.said
})

// hearer is a connection that keeps what is written to it.
type hearer struct {
	net.Conn
	said []byte
}

func (h *hearer) Write(p []byte) (int, error) {
	h.said = append(h.said, p...)
	return len(p), nil
}

func (h *hearer) Read([]byte) (int, error) { return 0, io.EOF }

// say connects and sends these bytes.
func say(t testing.TB, addr string, text []byte) net.Conn {
	t.Helper()
	c := dial(t, addr, 0)
	if _, err := c.Write(text); err != nil {
		t.Fatal(err)
	}
	return c
}

// waitingHandshakes waits until so many of them wait for something.
func waitingHandshakes(t testing.TB, l *Loop, silent, stalled, ready int) {
	t.Helper()
	eventually(t, "handshakes waiting", func() bool {
		l.handshakes.mu.Lock()
		defer l.handshakes.mu.Unlock()
		var n [3]int
		for _, l := range l.handshakes.crowd.lines {
			n[0] += l.silent.Len()
			n[1] += l.stalled.Len()
			n[2] += l.ready.Len()
		}
		return n == [3]int{silent, stalled, ready}
	})
}

func failed(t testing.TB, l *Loop, why failure, want int) {
	t.Helper()
	eventually(t, "failures: "+string(why), func() bool {
		return testutil.ToFloat64(l.metrics.handshakeFailures[why]) == float64(want)
	})
}

// TestManyAtOnce: what opens hundreds of connections at once (web3.js with as many
// calls) gets them all.
func TestManyAtOnce(t *testing.T) {
	const conns, patience = 400, time.Minute
	l := start(t, Config{HandshakeTimeout: patience})
	addr := listen(t, l, serverTLS(), echoing(nil))
	raw := make([]net.Conn, conns)
	for i := range raw {
		raw[i] = dial(t, addr, 0)
		_ = raw[i].SetDeadline(time.Now().Add(patience))
	}
	waitingHandshakes(t, l, conns, 0, 0)
	errs := make(chan error, conns)
	for _, c := range raw {
		go func() {
			secure := tls.Client(c, clientTLS(tls.VersionTLS13))
			_, err := secure.Write([]byte("x"))
			if err == nil {
				_, err = io.ReadFull(secure, make([]byte, 1))
			}
			errs <- err
		}()
	}
	for range raw {
		if err := wait(t, "an answer", errs); err != nil {
			t.Error(err)
		}
	}
}

// TestHandshakeTimeout: those that wait for their client are closed in time, and
// meanwhile in nobody's way.
func TestHandshakeTimeout(t *testing.T) {
	const patience = 500 * time.Millisecond
	l := start(t, Config{Handshakes: 1, HandshakeTimeout: patience})
	addr := listen(t, l, serverTLS(), echoing(nil))
	began := time.Now()
	slow := []net.Conn{
		dial(t, addr, 0), say(t, addr, hello()[:len(hello())/2]), say(t, addr, hello()), say(t, addr, hello()),
	}
	waitingHandshakes(t, l, 2, 2, 0)
	exchange(t, dial(t, addr, tls.VersionTLS13), []byte("hello"))
	for i, c := range slow {
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("slow client %d got %v, want the end", i, err)
		}
		if d := time.Since(began); d < patience {
			t.Errorf("slow client %d was closed after %v, want %v", i, d, patience)
		}
	}
	failed(t, l, failedTimeout, len(slow))
	waitingHandshakes(t, l, 0, 0, 0)
}

func TestHandshakesPerAddr(t *testing.T) {
	l := start(t, Config{HandshakesPerAddr: 1})
	addr := listen(t, l, serverTLS(), echoing(nil))
	silent := dial(t, addr, 0)
	waitingHandshakes(t, l, 1, 0, 0)
	refused(t, dial(t, addr, 0))
	if got := testutil.ToFloat64(l.metrics.refused[refusedHandshakesPerAddr]); got != 1 {
		t.Errorf("refused{handshakes_per_addr} = %v, want 1", got)
	}
	_ = silent.Close()
	failed(t, l, failedGone, 1)
	exchange(t, dial(t, addr, tls.VersionTLS13), []byte("hello"))
	exchange(t, dial(t, addr, tls.VersionTLS13), []byte("hello, and the first is not counted any more"))
}

// TestHandshakeQueue: with no place left the oldest silent one goes.
func TestHandshakeQueue(t *testing.T) {
	l := start(t, Config{HandshakeQueue: 2, HandshakeTimeout: time.Minute})
	addr := listen(t, l, serverTLS(), echoing(nil))
	first := dial(t, addr, 0)
	waitingHandshakes(t, l, 1, 0, 0)
	second := dial(t, addr, 0)
	waitingHandshakes(t, l, 2, 0, 0)
	exchange(t, dial(t, addr, tls.VersionTLS13), []byte("hello"))
	refused(t, first)
	failed(t, l, failedCrowded, 1)
	waitingHandshakes(t, l, 1, 0, 0)
	_ = second.Close()
	failed(t, l, failedGone, 1)
}

// held makes handshakes wait where they compute.
type held struct {
	began chan net.Addr
	goOn  chan struct{}
}

func (h *held) tls() *tls.Config {
	h.began, h.goOn = make(chan net.Addr, 64), make(chan struct{}, 64)
	cfg := serverTLS().Clone()
	cfg.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h.began <- info.Conn.RemoteAddr()
		<-h.goOn
		return serverTLS(), nil
	}
	return cfg
}

// TestCloseInHandshakes: the loop ends whatever handshakes wait for.
func TestCloseInHandshakes(t *testing.T) {
	l := start(t, Config{Handshakes: 1, HandshakeTimeout: time.Minute})
	plainAddr := listen(t, l, serverTLS(), echoing(nil))
	conns := []net.Conn{dial(t, plainAddr, 0), say(t, plainAddr, hello())}
	waitingHandshakes(t, l, 1, 1, 0)
	var h held
	addr := listen(t, l, h.tls(), echoing(nil))
	conns = append(conns, say(t, addr, hello()))
	wait(t, "a handshake that computes", h.began)
	conns = append(conns, say(t, addr, hello()), say(t, plainAddr, hello()))
	waitingHandshakes(t, l, 1, 1, 2)

	closed := make(chan error, 1)
	go func() { closed <- l.Close(context.Background()) }()
	failed(t, l, failedClosing, 4)
	h.goOn <- struct{}{}
	if err := wait(t, "Close", closed); err != nil {
		t.Error(err)
	}
	failed(t, l, failedClosing, 5)
	for i, c := range conns {
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d is still open", i)
		}
	}
}

func TestAwaitHandshakes(t *testing.T) {
	l := start(t, Config{})
	opened := make(chan struct{}, 1)
	addr := listen(t, l, serverTLS(), func(c *Conn) Handler {
		opened <- struct{}{}
		return echoing(nil)(c)
	})
	ctx, cancel := context.WithCancel(t.Context())
	l.AwaitHandshakes(ctx) // there is none
	c := dial(t, addr, 0)
	waitingHandshakes(t, l, 1, 0, 0)
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.AwaitHandshakes(context.Background())
		if len(opened) != 1 {
			t.Error("a handshake was not awaited")
		}
	}()
	cancel()
	l.AwaitHandshakes(ctx)
	if err := tls.Client(c, clientTLS(tls.VersionTLS13)).Handshake(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the end of all handshakes", over)
}

func TestHandshakeFailures(t *testing.T) {
	l := start(t, Config{})
	addr := listen(t, l, serverTLS(), echoing(nil))
	c := dial(t, addr, 0)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(c)
	eventually(t, "counting it", func() bool {
		return testutil.ToFloat64(l.metrics.handshakeFailures[failedProtocol]) == 1
	})
}
