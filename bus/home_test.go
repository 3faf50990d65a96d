package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
)

// announced is what a worker has said of itself, as seen from a server.
type announced struct {
	mu   sync.Mutex
	all  []bus.Load
	conn *nats.Conn
}

func listen(t *testing.T, url, worker string) *announced {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	a := &announced{conn: nc}
	_, err = nc.Subscribe("ommer.load."+worker, func(m *nats.Msg) {
		var l bus.Load
		if err := json.Unmarshal(m.Data, &l); err != nil {
			t.Error(err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.all = append(a.all, l)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return a
}

// last is the newest announcement.
func (a *announced) last() (l bus.Load) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.all); n > 0 {
		l = a.all[n-1]
	}
	return l
}

func (a *announced) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all)
}

// direct asks the worker w1 itself, in plain JSON.
func direct(nc *nats.Conn, timeout time.Duration) error {
	m, err := nc.Request("ommer.w.w1.v1."+network+"."+byNumber.Method().String(), []byte(`["0x7","0x0"]`), timeout)
	if err == nil && !strings.Contains(string(m.Data), `"result":`+known[byNumber]) {
		err = fmt.Errorf("got %s", m.Data)
	}
	return err
}

func TestAnnouncements(t *testing.T) {
	t.Parallel()
	srv := startNATS(t, embedded.Config{})
	heard := listen(t, srv.URL(), "w1")
	fixed := schematest.NewFixed(known)
	t.Cleanup(fixed.Stop)
	var missing atomic.Pointer[error]
	s := newServer(t, bus.ServerConfig{
		Links: []*bus.Link{dial(t, "w", srv.URL())}, Resolver: fixed, WorkerID: "w1", Zone: "z1", Version: "v1.2.3", MaxInFlight: 77,
		Ready: func() error {
			if e := missing.Load(); e != nil {
				return *e
			}
			return nil
		},
	})
	eventually(t, "the first announcement", func() bool { return heard.count() > 0 })
	first := heard.last()
	want := bus.Load{
		Worker: "w1", Instance: first.Instance, Network: network, Zone: "z1", State: bus.Ready, Home: true, MaxInFlight: 77, Version: "v1.2.3",
	}
	if first != want || first.Instance == "" {
		t.Errorf("got %+v, want %+v", first, want)
	}
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	for range 10 {
		ask(t, c, byNumber, patience).want(schema.OK)
	}
	fixed.Hold()
	held := []*one{ask(t, c, byNumber, patience), ask(t, c, byNumber, patience)}
	eventually(t, "the figures", func() bool {
		l := heard.last()
		return l.Answered == 10 && l.ServiceTime > 0 && l.ServiceTime < patience && l.InFlight == 2
	})
	err := context.DeadlineExceeded
	missing.Store(&[]error{err}[0])
	eventually(t, "it has no node", func() bool { return heard.last().State == bus.Unready })
	missing.Store(nil)
	eventually(t, "it has one", func() bool { return heard.last().State == bus.Ready })

	left := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { left <- s.Leave(ctx) }()
	eventually(t, "it says that it leaves, with questions in flight", func() bool {
		l := heard.last()
		return l.State == bus.Leaving && l.InFlight == 2 && l.Epoch == 0
	})
	fixed.Release()
	for _, o := range held {
		o.want(schema.OK)
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
	eventually(t, "the last word", func() bool {
		l := heard.last()
		return l.State == bus.Leaving && l.InFlight == 0 && l.Epoch == 1 && l.Answered == 12
	})
	heard.mu.Lock()
	defer heard.mu.Unlock()
	for _, l := range heard.all {
		if l.Instance != first.Instance {
			t.Errorf("instance %q, then %q", first.Instance, l.Instance)
		}
	}
}

// A worker without a name says nothing.
func TestNamelessWorkerIsSilent(t *testing.T) {
	t.Parallel()
	srv := startNATS(t, embedded.Config{})
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	sub, err := nc.SubscribeSync("ommer.load.>")
	if err != nil {
		t.Fatal(err)
	}
	startInstant(t, srv.URL())
	if m, err := sub.NextMsg(2 * bus.LoadInterval); err == nil {
		t.Errorf("%s", m.Data)
	}
}

// links dials one link to each server.
func links(t *testing.T, name string, servers ...*server.Server) (all []*bus.Link) {
	t.Helper()
	for _, s := range servers {
		all = append(all, dial(t, name, s.ClientURL()))
	}
	return all
}

// startHomed starts the worker w1 on some links, the first of them its home, and
// returns what it is heard to say at a server.
func startHomed(t *testing.T, at *server.Server, links []*bus.Link, r schema.Resolver) *announced {
	t.Helper()
	heard := listen(t, at.ClientURL(), "w1")
	leaveAtEnd(t, newServer(t, bus.ServerConfig{Links: links, Resolver: r, WorkerID: "w1"}))
	eventually(t, "it is heard", func() bool { return heard.count() > 0 })
	eventually(t, "it is found", func() bool { return direct(heard.conn, time.Second) == nil })
	return heard
}

// TestHomeIsLost: the server that a worker's own questions come over is gone. They come
// over the other one at once, and it says that some may be lost.
func TestHomeIsLost(t *testing.T) {
	t.Parallel()
	n := natsCluster(t, 3)
	heard := startHomed(t, n[2], links(t, "w", n[0], n[1]), instantFixed)
	before := heard.last()
	n[0].Shutdown()
	eventually(t, "it says so", func() bool { return heard.last().Epoch == before.Epoch+1 })
	eventually(t, "it is found elsewhere", func() bool { return direct(heard.conn, time.Second) == nil })
	if l := heard.last(); l.Epoch != before.Epoch+1 {
		t.Errorf("epoch %d, was %d before one loss", l.Epoch, before.Epoch)
	}
}

// instantFixed answers the known question at once.
var instantFixed = resolverFunc(func(q schema.Question, _ time.Time, to schema.Receiver) {
	to.Answered(schema.Answer{Result: []byte(known[q])})
})

// TestAnswerGoesOverAnotherLink: the link that a question came over is lost and stays so.
func TestAnswerGoesOverAnotherLink(t *testing.T) {
	t.Parallel()
	n := natsCluster(t, 3, func(o *server.Options) { o.Cluster.NoAdvertise = true }) // so that links know one server
	fixed := schematest.NewFixed(known)
	t.Cleanup(fixed.Stop)
	work := links(t, "w", n[0], n[1])
	heard := startHomed(t, n[2], work, fixed)
	fixed.Hold()
	answered := make(chan error, 1)
	go func() { answered <- direct(heard.conn, patience) }()
	eventually(t, "it is held", func() bool { return len(fixed.Waiting()) == 1 })
	n[0].Shutdown()
	eventually(t, "the link is lost", func() bool { return !work[0].Up() })
	fixed.Release()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// TestLossOfACarrierIsTold: a link that is not the home counts when answers went over it.
func TestLossOfACarrierIsTold(t *testing.T) {
	t.Parallel()
	n := natsCluster(t, 3)
	heard := startHomed(t, n[2], links(t, "w", n[0], n[1]), instantFixed)
	// A server passes each to either link, once it has heard of both.
	eventually(t, "an answer goes over the other link", func() bool {
		if _, err := heard.conn.Request("ommer.v1."+network+"."+byNumber.Method().String(), []byte(`["0x7","0x0"]`), patience); err != nil {
			t.Fatal(err)
		}
		return delivered(t, n[1], "ommer.v1."+network+".*") > 0
	})
	before := heard.last()
	n[1].Shutdown()
	eventually(t, "it says so", func() bool { return heard.last().Epoch == before.Epoch+1 })
	if err := direct(heard.conn, patience); err != nil {
		t.Error(err)
	}
}

// TestLameDuckUnderLoad: the servers of a cluster are about to stop one after the
// other. A worker leaves each in time, and nothing that is asked gets lost.
func TestLameDuckUnderLoad(t *testing.T) {
	t.Parallel()
	n := natsCluster(t, 4)
	edge := n[3]
	work := links(t, "w", n[0], n[1])
	// Slower than a drain, so that answers are due when the connection is given up.
	slow := resolverFunc(func(q schema.Question, _ time.Time, to schema.Receiver) {
		time.AfterFunc(250*time.Millisecond, func() { to.Answered(schema.Answer{Result: []byte(known[q])}) })
	})
	heard := startHomed(t, edge, work, slow)
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", edge.ClientURL())}})
	eventually(t, "the queue is found", func() bool { return ask(t, c, byNumber, patience).wait().Err == nil })
	l := startLoad(t, c, 128, 5*time.Second)
	var directly sync.WaitGroup
	var asked, lost atomic.Int64
	var stop atomic.Bool
	for range 16 {
		directly.Go(func() {
			for !stop.Load() {
				asked.Add(1)
				if err := direct(heard.conn, 5*time.Second); err != nil {
					lost.Add(1)
					t.Error(err)
				}
			}
		})
	}
	serverOf := func(l *bus.Link) string { return l.NATS().ConnectedServerName() }
	for _, i := range []int{0, 1} {
		before := l.codes[schema.OK].Load()
		eventually(t, "answers", func() bool { return l.codes[schema.OK].Load() > before+200 })
		go n[i].LameDuckShutdown()
		eventually(t, "it is left", func() bool {
			return work[0].Up() && work[1].Up() && serverOf(work[0]) != n[i].Name() && serverOf(work[1]) != n[i].Name()
		})
	}
	before := l.codes[schema.OK].Load()
	eventually(t, "answers at the end", func() bool { return l.codes[schema.OK].Load() > before+200 })
	stop.Store(true)
	directly.Wait()
	l.end()
	if l.failed() > 0 || lost.Load() > 0 {
		t.Errorf("asked in the queue: %d: %v; directly: %d, %d of them lost", l.asked.Load(), l, asked.Load(), lost.Load())
	}
	t.Logf("asked in the queue: %d: %v; directly: %d, %d of them lost", l.asked.Load(), l, asked.Load(), lost.Load())
}

// TestMuteHomeIsLeft: the connection of the home is open and silent. The worker finds
// out by itself, before the connection's own pings do, is asked elsewhere, and comes
// back over another server.
func TestMuteHomeIsLeft(t *testing.T) {
	t.Parallel()
	n := natsCluster(t, 3)
	f := newFreezer(t, strings.TrimPrefix(n[0].ClientURL(), "nats://"))
	work := []*bus.Link{dial(t, "w", "nats://"+f.ln.Addr().String()), dial(t, "w", n[1].ClientURL())}
	var downs atomic.Int32
	work[1].Watch(func(bool) { downs.Add(1) })
	var log logBuffer
	heard := listen(t, n[2].ClientURL(), "w1")
	leaveAtEnd(t, newServer(t, bus.ServerConfig{
		Links: work, Resolver: instantFixed, WorkerID: "w1", Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}))
	eventually(t, "it is found", func() bool { return direct(heard.conn, time.Second) == nil })
	before := heard.last()
	eventually(t, "it has heard itself", func() bool { return heard.count() > 10 })
	stalled := stalls(t)
	close(f.frozen)
	eventually(t, "it says so", func() bool { return heard.last().Epoch > before.Epoch })
	if !strings.Contains(log.String(), "does not pass on what is published") && !stalled() {
		t.Errorf("it was not the worker that found out:\n%s", &log)
	}
	eventually(t, "it is found elsewhere", func() bool { return direct(heard.conn, time.Second) == nil })
	for range 100 { // each of them: none goes to who cannot be reached alone
		if err := direct(heard.conn, patience); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the link is up elsewhere", func() bool { return work[0].Up() && work[0].NATS().ConnectedAddr() != f.ln.Addr().String() })
	if downs.Load() > 0 {
		t.Error("the link that works was given up as well")
	}
	if l := heard.last(); l.Epoch != before.Epoch+1 {
		t.Errorf("epoch %d after one loss, was %d", l.Epoch, before.Epoch)
	}
}
