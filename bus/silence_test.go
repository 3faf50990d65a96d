package bus_test

import (
	"sync"
	"testing"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
)

func TestHungWorkerIsLeft(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, bus.ClientConfig{})
	f.where(t, 100)
	f.workers[0].hang()
	var all []*one
	for n := range uint64(1000) {
		all = append(all, ask(t, f, schema.Question{Block: schema.Number(n)}, patience))
	}
	for _, o := range all {
		o.want(schema.OK)
	}
	if got := f.retries(t, "worker-lost"); got == 0 {
		t.Error("none was asked again")
	}
	f.wantKnown(t, 1)
	asked := f.workers[0].asked.Load()
	f.where(t, 100)
	if got := f.workers[0].asked.Load(); got != asked {
		t.Errorf("%d more for the one that hangs", got-asked)
	}
}

// A worker that may have lost what it was asked says so, and is asked again.
func TestLostQuestionsAreAskedAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*bus.Load){
		"connection": func(l *bus.Load) { l.Epoch++ },
		"restart":    func(l *bus.Load) { l.Instance = "2" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1, bus.ClientConfig{})
			w := f.workers[0]
			w.will(swallow)
			var all []*one
			for range 100 {
				all = append(all, ask(t, f, byNumber, patience))
			}
			eventually(t, "all were asked", func() bool { return w.asked.Load() == 100 })
			w.will(w.answer)
			w.change(change)
			for _, o := range all {
				o.want(schema.OK)
			}
			if got := w.asked.Load(); got != 200 {
				t.Errorf("asked %d times, want each twice", got)
			}
		})
	}
}

// What a worker says of its move is heard over one link before the server of another one
// knows where it is now: what it is asked that way would be lost again.
func TestQuestionsFollowAWorkerThatMoves(t *testing.T) {
	here, there := startNATS(t, embedded.Config{}).URL(), startNATS(t, embedded.Config{}).URL()
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", here), dial(t, "e", there)}})
	w, alsoW := newHerald(t, here, "w0"), newHerald(t, there, "w0")
	eventually(t, "the worker is known", func() bool { return len(c.Ranked()) == 1 })
	w.will(swallow)
	var all []*one
	for range 100 {
		all = append(all, ask(t, c, byNumber, patience))
	}
	eventually(t, "all were asked", func() bool { return w.asked.Load()+alsoW.asked.Load() >= 100 })
	move := func(l *bus.Load) { l.Epoch++ }
	alsoW.change(move)
	eventually(t, "the move is known", func() bool { return c.Epoch("w0") == 1 })
	w.will(w.answer)
	w.change(move)
	for _, o := range all {
		o.want(schema.OK)
	}
	if got := w.asked.Load(); got > 300 {
		t.Errorf("%d questions became %d", len(all), got)
	}
}

// What the queue group was asked, because no worker could be reached at home, is asked
// again when one can.
func TestLostInTheQueueGroup(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, bus.ClientConfig{})
	for _, w := range f.workers {
		w.change(func(l *bus.Load) { l.Home = false })
	}
	f.wantKnown(t, 0)
	for _, w := range f.workers {
		w.will(swallow)
	}
	var all []*one
	for range 100 {
		all = append(all, ask(t, f, byNumber, patience))
	}
	eventually(t, "all were asked", func() bool { return f.workers[0].asked.Load()+f.workers[1].asked.Load() >= 100 })
	w := f.workers[0]
	w.will(w.answer)
	w.change(func(l *bus.Load) { l.Home = true })
	for _, o := range all {
		o.want(schema.OK)
	}
}

// A worker that is heard all the time, but not from its home any more, is as silent as one
// that says nothing: what it was asked is asked elsewhere.
func TestHomeFallsSilent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, bus.ClientConfig{Shards: 1}) // so that hedges save four of them
	w := f.workers[0]
	w.will(swallow)
	w.change(func(l *bus.Load) { l.Home = false })
	stop := make(chan struct{})
	var talking sync.WaitGroup
	talking.Go(func() {
		tick := time.NewTicker(time.Millisecond) // more often than the client looks who is silent
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.announce()
			case <-stop:
				return
			}
		}
	})
	defer talking.Wait()
	defer close(stop)
	var all []*one
	for n := range uint64(200) {
		all = append(all, ask(t, f, schema.Question{Block: schema.Number(n)}, patience))
	}
	for _, o := range all {
		o.want(schema.OK)
	}
	f.wantKnown(t, 1)
}

// Workers that are heard, but not from their homes, are asked in the queue group.
func TestNoWayHome(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, bus.ClientConfig{})
	for _, w := range f.workers {
		if err := w.direct.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		w.change(func(l *bus.Load) { l.Home = false })
	}
	f.wantKnown(t, 0)
	f.where(t, 20)
}
