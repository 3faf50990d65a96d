package bus_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
	"github.com/prometheus/client_golang/prometheus"
)

// freeAddr is an address that nobody listens on, and that stays free: systems give the
// ports from 32768 on to connections, and to who does not care.
func freeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(22000)))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("no address is free")
	return ""
}

// logBuffer is a log that is read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestProcessesStartInAnyOrder(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	var log logBuffer
	edge, err := bus.Dial(bus.LinkConfig{
		Name: "e", URLs: []string{"nats://someone:verysecret@" + addr},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(edge.Close)
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{edge}})
	first := ask(t, c, byNumber, patience)
	first.want(schema.NoWorkers) // after the time that a lost link may take
	if first.took < time.Second || first.took > patience/2 {
		t.Errorf("without NATS: took %v", first.took)
	}
	eventually(t, "and again, at once", func() bool {
		again := ask(t, c, byNumber, patience)
		again.want(schema.NoWorkers)
		return again.took < 500*time.Millisecond
	})
	if got := c.Missing(); !strings.Contains(got, "not connected to NATS at nats://"+addr) {
		t.Errorf("missing: %q", got)
	}

	work := dial(t, "w", "nats://"+addr)
	fixed := schematest.NewFixed(known)
	t.Cleanup(fixed.Stop)
	leaveAtEnd(t, newServer(t, bus.ServerConfig{Links: []*bus.Link{work}, Resolver: fixed}))
	startNATS(t, embedded.Config{Addr: addr})
	eventually(t, "everyone is connected", func() bool { return c.Missing() == "" && work.Missing() == "" })
	eventually(t, "answers", func() bool { return ask(t, c, byNumber, patience).wait().Err == nil })

	text := log.String()
	if strings.Contains(text, "secret") || strings.Contains(text, "someone") {
		t.Errorf("credentials in the log:\n%s", text)
	}
	if a, b := strings.Count(text, "cannot be reached"), strings.Count(text, "bus connected"); a != 1 || b != 1 {
		t.Errorf("logged %d and %d times:\n%s", a, b, text)
	}
}

func TestServerRestartUnderLoad(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	srv, err := embedded.New(embedded.Config{Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	newFixedServer(t, srv.URL(), nil)
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	l := startLoad(t, c, 64, 3*time.Second)
	for range 3 {
		before := l.codes[schema.OK].Load()
		eventually(t, "answers", func() bool { return l.codes[schema.OK].Load() > before+1000 })
		srv.Close()
		if srv, err = embedded.New(embedded.Config{Addr: addr}); err != nil {
			t.Fatal(err)
		}
	}
	defer srv.Close()
	before := l.codes[schema.OK].Load()
	eventually(t, "answers at the end", func() bool { return l.codes[schema.OK].Load() > before+1000 })
	l.end()
	if c.Pending() != 0 {
		t.Errorf("%d pending", c.Pending())
	}
	t.Logf("%d asked: %v", l.asked.Load(), l)
}

func TestQuestionsWaitForALostServer(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	srv := startNATS(t, embedded.Config{Addr: addr})
	newFixedServer(t, srv.URL(), nil)
	link := dial(t, "e", srv.URL())
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{link}})
	steadily(t, func() (wrong string) { // it has to be back within 2 s
		srv.Close()
		eventually(t, "the link is down", func() bool { return !link.Up() })
		o := ask(t, c, byNumber, patience)
		srv = startNATS(t, embedded.Config{Addr: addr})
		if a := o.wait(); a.Err != nil {
			return a.Err.Error()
		}
		return ""
	})
}

func TestLostLinkIsReplacedByTheOther(t *testing.T) {
	t.Parallel()
	n := natsCluster(t, 2)
	fixed := newFixedServer(t, n[1].ClientURL(), nil)
	reg := prometheus.NewRegistry()
	viaA := dial(t, "ea", n[0].ClientURL())
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{viaA, dial(t, "eb", n[1].ClientURL())}, Registerer: reg})
	eventually(t, "the servers know each other", func() bool {
		for range 32 { // both links are used
			if ask(t, c, byNumber, patience).wait().Err != nil {
				return false
			}
		}
		return true
	})
	fixed.Hold()
	var in []*one
	for range 400 {
		in = append(in, ask(t, c, byNumber, patience))
	}
	eventually(t, "all are held", func() bool { return len(fixed.Waiting()) >= 400 })
	lost := make(chan struct{})
	down := sync.OnceFunc(func() { close(lost) })
	viaA.Watch(func(up bool) {
		if !up {
			down()
		}
	})
	n[0].Shutdown()
	<-lost // for a moment: the cluster has told it of the other server
	eventually(t, "what went over it is asked again", func() bool {
		return counter(t, reg, "ommer_bus_ask_retries_total", "link-lost") > 100
	})
	fixed.Release()
	for _, o := range in {
		o.want(schema.OK)
	}
	for range 100 {
		ask(t, c, byNumber, patience).want(schema.OK)
	}
}

// freezer passes bytes on until it is frozen, and then keeps the connections open
// and silent, as a stopped machine does.
type freezer struct {
	ln     net.Listener
	frozen chan struct{}
	wg     sync.WaitGroup
	mu     sync.Mutex
	conns  []net.Conn
	ended  bool // no more of them
}

func newFreezer(t *testing.T, target string) *freezer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &freezer{ln: ln, frozen: make(chan struct{})}
	f.wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			f.mu.Lock()
			if f.ended { // while it was being dialled
				_ = in.Close()
				_ = out.Close()
			} else {
				f.conns = append(f.conns, in, out)
			}
			f.mu.Unlock()
			f.wg.Go(func() { f.pass(out, in) })
			f.wg.Go(func() { f.pass(in, out) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		f.mu.Lock()
		f.ended = true
		for _, c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.wg.Wait()
	})
	return f
}

func (f *freezer) pass(to io.WriteCloser, from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		select {
		case <-f.frozen:
			if err == nil {
				continue
			}
		default:
		}
		if err != nil {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func TestSilentServerIsLeft(t *testing.T) {
	t.Parallel()
	srv := startNATS(t, embedded.Config{})
	newFixedServer(t, srv.URL(), nil)
	f := newFreezer(t, strings.TrimPrefix(srv.URL(), "nats://"))
	frozen := dial(t, "ef", "nats://"+f.ln.Addr().String())
	var log logBuffer
	c := newClient(t, bus.ClientConfig{
		Links: []*bus.Link{frozen, dial(t, "e", srv.URL())}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for range 32 {
		ask(t, c, byNumber, patience).want(schema.OK)
	}
	stalled := stalls(t)
	close(f.frozen)
	var in []*one
	for range 200 {
		in = append(in, ask(t, c, byNumber, patience))
	}
	for _, o := range in {
		o.want(schema.OK)
	}
	eventually(t, "it was not the connection's own pings that found out", func() bool {
		return strings.Contains(log.String(), "bus server is silent") || stalled()
	})
}

func TestLinkWatchAndClose(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	l, err := bus.Dial(bus.LinkConfig{Name: "e", URLs: []string{srv.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	if !l.Up() || l.Missing() != "" {
		t.Errorf("up %v, missing %q", l.Up(), l.Missing())
	}
	changes := make(chan string, 8)
	l.Watch(func(up bool) { changes <- fmt.Sprint("kept ", up) })
	cancel := l.Watch(func(up bool) { changes <- fmt.Sprint("cancelled ", up) })
	cancel()
	srv.Close()
	if got := <-changes; got != "kept false" {
		t.Errorf("got %q", got)
	}
	l.Close()
	l.Close() // again is fine
	if l.Up() {
		t.Error("closed, and up")
	}
}
