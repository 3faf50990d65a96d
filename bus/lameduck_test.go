package bus_test

import (
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/schema"
)

// startPair starts two servers that know each other and can be told to stop slowly.
func startPair(t *testing.T) (a, b *server.Server) {
	t.Helper()
	routes := []*url.URL{{Scheme: "nats", Host: freeAddr(t)}, {Scheme: "nats", Host: freeAddr(t)}}
	start := func(i int, name string) *server.Server {
		host, port := hostPort(t, routes[i].Host)
		s, err := server.NewServer(&server.Options{
			ServerName: name, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			LameDuckDuration: 10 * time.Second, LameDuckGracePeriod: 5 * time.Second,
			Cluster: server.ClusterOpts{Name: "c", Host: host, Port: port},
			Routes:  []*url.URL{routes[1-i]},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(patience) {
			t.Fatal("no connections")
		}
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		return s
	}
	return start(0, "a"), start(1, "b")
}

// A server that says that it is about to stop is left before it does, and after it has
// brought the answers that were to come.
func TestLameDuck(t *testing.T) {
	a, b := startPair(t)
	links := []*bus.Link{dial(t, "e", a.ClientURL()), dial(t, "e", b.ClientURL())}
	w := newHerald(t, b.ClientURL(), "w0")
	f := &fleet{Client: newClient(t, bus.ClientConfig{Links: links})}
	f.wantKnown(t, 1)
	eventually(t, "answers", func() bool { return ask(t, f, byNumber, patience).wait().Err == nil })
	asked, released := w.asked.Load(), make(chan struct{})
	w.will(func(id uint64, q schema.Question, reply string) {
		go func() { <-released; w.answer(id, q, reply) }()
	})
	var all []*one
	for range 10 {
		all = append(all, ask(t, f, byNumber, patience))
	}
	eventually(t, "all were asked", func() bool { return w.asked.Load() >= asked+10 })
	go a.LameDuckShutdown()
	eventually(t, "the next question goes another way", func() bool { return f.Lame(0) })
	w.will(w.answer)
	ask(t, f, byNumber, patience).want(schema.OK)
	if !links[0].Up() {
		t.Error("the link was given up with answers to come")
	}
	close(released)
	for _, o := range all {
		o.want(schema.OK)
	}
	eventually(t, "the link is on the other server", func() bool {
		return links[0].Up() && links[0].NATS().ConnectedServerName() == "b"
	})
	t.Logf("11 questions became %d", w.asked.Load()-asked) // more where the machine stalls
	ask(t, f, byNumber, patience).want(schema.OK)
}

// Clients for several networks over the same links leave together: one is enough to have
// the link connect elsewhere, and what another has asked over it is asked again.
func TestLameDuckOfTwoClients(t *testing.T) {
	a, b := startPair(t)
	links := []*bus.Link{dial(t, "e", a.ClientURL()), dial(t, "e", b.ClientURL())}
	w := newHerald(t, b.ClientURL(), "w0")
	f := &fleet{Client: newClient(t, bus.ClientConfig{Links: links})}
	other, err := bus.NewClient(bus.ClientConfig{Links: links, Network: "another"}) // has nobody to ask, and nothing to wait for
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	f.wantKnown(t, 1)
	eventually(t, "answers", func() bool { return ask(t, f, byNumber, patience).wait().Err == nil })
	asked, released := w.asked.Load(), make(chan struct{})
	w.will(func(id uint64, q schema.Question, reply string) {
		go func() { <-released; w.answer(id, q, reply) }()
	})
	var all []*one
	for range 10 {
		all = append(all, ask(t, f, byNumber, patience))
	}
	eventually(t, "all were asked", func() bool { return w.asked.Load() >= asked+10 })
	go a.LameDuckShutdown()
	eventually(t, "the link is on the other server", func() bool {
		return links[0].Up() && links[0].NATS().ConnectedServerName() == "b"
	})
	close(released)
	for _, o := range all {
		o.want(schema.OK)
	}
	w.will(w.answer)
	for range 100 { // in which the first client has had its turn as well
		ask(t, f, byNumber, patience).want(schema.OK)
	}
	if n := links[0].NATS().Stats().Reconnects; n != 1 {
		t.Errorf("the link has connected anew %d times, want once", n)
	}
}

func hostPort(t *testing.T, addr string) (string, int) {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return a.IP.String(), a.Port
}
