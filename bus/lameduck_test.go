package bus_test

import (
	"testing"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/schema"
)

// A server that says that it is about to stop is left before it does, and after it has
// brought the answers that were to come.
func TestLameDuck(t *testing.T) {
	t.Parallel()
	n := natsCluster(t, 2)
	work := links(t, "e", n[0], n[1])
	w := newHerald(t, n[1].ClientURL(), "w0")
	f := &fleet{Client: newClient(t, bus.ClientConfig{Links: work})}
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
	go n[0].LameDuckShutdown()
	eventually(t, "the next question goes another way", func() bool { return f.Lame(0) })
	w.will(w.answer)
	ask(t, f, byNumber, patience).want(schema.OK)
	if !work[0].Up() {
		t.Error("the link was given up with answers to come")
	}
	close(released)
	for _, o := range all {
		o.want(schema.OK)
	}
	eventually(t, "the link is on the other server", func() bool {
		return work[0].Up() && work[0].NATS().ConnectedServerName() == n[1].Name()
	})
	t.Logf("11 questions became %d", w.asked.Load()-asked) // more where the machine stalls
	ask(t, f, byNumber, patience).want(schema.OK)
}

// Clients for several networks over the same links leave together: one is enough to have
// the link connect elsewhere, and what another has asked over it is asked again.
func TestLameDuckOfTwoClients(t *testing.T) {
	t.Parallel()
	n := natsCluster(t, 2)
	work := links(t, "e", n[0], n[1])
	w := newHerald(t, n[1].ClientURL(), "w0")
	f := &fleet{Client: newClient(t, bus.ClientConfig{Links: work})}
	other, err := bus.NewClient(bus.ClientConfig{Links: work, Network: "another"}) // has nobody to ask, and nothing to wait for
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
	go n[0].LameDuckShutdown()
	eventually(t, "the link is on the other server", func() bool {
		return work[0].Up() && work[0].NATS().ConnectedServerName() == n[1].Name()
	})
	close(released)
	for _, o := range all {
		o.want(schema.OK)
	}
	w.will(w.answer)
	for range 100 { // in which the first client has had its turn as well
		ask(t, f, byNumber, patience).want(schema.OK)
	}
	if n := work[0].NATS().Stats().Reconnects; n != 1 {
		t.Errorf("the link has connected anew %d times, want once", n)
	}
}
