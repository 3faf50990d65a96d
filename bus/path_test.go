package bus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
)

// A NATS server that hangs is found by its silence, and what it holds is asked over
// another link.
func TestHungServer(t *testing.T) {
	t.Parallel()
	n := natsCluster(t, 2)
	f := newFreezer(t, strings.TrimPrefix(n[0].ClientURL(), "nats://"))
	links := []*bus.Link{dial(t, "e", "nats://"+f.ln.Addr().String()), dial(t, "e", n[1].ClientURL())}
	newHerald(t, n[1].ClientURL(), "w0")
	c := newClient(t, bus.ClientConfig{Links: links})
	eventually(t, "the worker is known", func() bool { return len(c.Ranked()) == 1 })
	eventually(t, "answers", func() bool { return ask(t, c, byNumber, patience).wait().Err == nil })
	close(f.frozen)
	began := time.Now()
	var all []*one
	for range 200 {
		all = append(all, ask(t, c, byNumber, patience))
	}
	for _, o := range all {
		o.want(schema.OK)
	}
	t.Logf("the last answer came after %v", time.Since(began))
	eventually(t, "the link goes another way", func() bool {
		return links[0].Up() && !strings.HasSuffix(links[0].NATS().ConnectedUrl(), f.ln.Addr().String())
	})
	ask(t, c, byNumber, patience).want(schema.OK)
}

// The servers hear both the client and the worker, but no longer each other: questions
// take the link by which they get to the worker's home.
func TestCutBetweenServers(t *testing.T) {
	t.Parallel()
	a, b := startNATS(t, embedded.Config{}), startNATS(t, embedded.Config{})
	links := []*bus.Link{dial(t, "e", a.URL()), dial(t, "e", b.URL())}
	home, far := newHerald(t, b.URL(), "w0"), newHerald(t, a.URL(), "w0") // as if a were joined to b
	f := &fleet{Client: newClient(t, bus.ClientConfig{Links: links})}
	f.wantKnown(t, 1)
	for range 10 {
		ask(t, f, byNumber, patience).want(schema.OK)
	}
	if far.asked.Load() == 0 {
		t.Fatal("the first link is not used")
	}
	far.will(swallow)
	far.change(func(l *bus.Load) { l.Home = false })
	var all []*one
	for range 100 {
		all = append(all, ask(t, f, byNumber, patience))
	}
	for _, o := range all {
		o.want(schema.OK)
	}
	if home.asked.Load() == 0 {
		t.Error("answered from nowhere")
	}
	asked := far.asked.Load()
	for range 10 {
		ask(t, f, byNumber, patience).want(schema.OK)
	}
	if got := far.asked.Load(); got != asked {
		t.Errorf("%d more went the way that leads nowhere", got-asked)
	}
	far.will(far.answer)
	far.change(func(l *bus.Load) { l.Home = true })
	eventually(t, "the first link is used again", func() bool {
		ask(t, f, byNumber, patience).want(schema.OK)
		return far.asked.Load() > asked
	})
}
