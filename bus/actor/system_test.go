package actor

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestStopOrder: the last spawned stops first, and those it uses are there until
// its end.
func TestStopOrder(t *testing.T) {
	s := newSystem(t, Config{})
	notes := make(chan string, 10)
	first := spawn(t, s, Options{Name: "first"}, &witness{notes: notes})
	second := spawn(t, s, Options{Name: "second"}, &witness{notes: notes, on: func(m string) {
		tell(t, first, "from "+m)
	}})
	held, release := make(chan struct{}), make(chan struct{})
	spawn(t, s, Options{Name: "third"}, &hold{held, release, notes})
	stopped := make(chan error)
	go func() { stopped <- s.Stop(context.Background()) }()
	<-held
	tell(t, second, "1", "2") // while the third stops, the others take mail
	close(release)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	close(notes)
	got := slices.Collect(chanValues(notes))
	var ends []string
	for _, n := range got {
		if n == "stopped" || n == "third stopped" {
			ends = append(ends, n)
		}
	}
	if len(got) != 7 || !slices.Equal(ends, []string{"third stopped", "stopped", "stopped"}) {
		t.Errorf("got %q", got)
	}
	if i := slices.Index(got, "from 2"); i < 0 || i == len(got)-1 {
		t.Errorf("the first did not receive what the second told: %q", got)
	}
}

// hold is an actor that is busy until it is released.
type hold struct {
	held, release chan struct{}
	notes         chan<- string
}

func (h *hold) Receive(string) {}
func (h *hold) Stopped() {
	close(h.held)
	<-h.release
	h.notes <- "third stopped"
}

func TestStopDrains(t *testing.T) {
	const n = 5000
	s := newSystem(t, Config{})
	got := 0
	r := spawn(t, s, Options{Name: "a", Mailbox: n}, receive[int](func(int) { got++ }))
	for i := range n {
		tell(t, r, i)
	}
	var wg sync.WaitGroup
	for range 3 { // more than one call: all wait for the end
		wg.Go(func() {
			if err := s.Stop(context.Background()); err != nil {
				t.Errorf("Stop: %v", err)
			}
			if got != n {
				t.Errorf("Stop returned after %d of %d messages", got, n)
			}
		})
	}
	wg.Wait()
	if _, err := Spawn(s, Options{Name: "b"}, func(*Ref[int]) (Actor[int], error) {
		t.Error("start was called after the stop")
		return nil, nil
	}); !errors.Is(err, ErrStopped) {
		t.Errorf("Spawn after Stop: %v, want ErrStopped", err)
	}
}

// TestStopDeadline: when the context ends, what has not been received is failed;
// nobody is forgotten and Stopped is called all the same.
func TestStopDeadline(t *testing.T) {
	s, err := NewSystem(Config{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 100
	to := make(chan string, n)
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("reason")
	f := &fickle{t: t, on: map[string]func(){}}
	r := f.spawn(s, Options{Name: "a"})
	f.on["slow"] = func() {
		cancel(reason)
		for !r.proc.killed.Load() { // as long as Stop takes to see it
			runtime.Gosched()
		}
	}
	tell(t, r, failed{name: "slow", to: to})
	for range n {
		tell(t, r, failed{name: "m", to: to})
	}
	if err := s.Stop(ctx); !errors.Is(err, reason) || !strings.Contains(err.Error(), "100 messages") {
		t.Errorf("Stop: %v, want the context's cause", err)
	}
	close(to)
	if got := slices.Collect(chanValues(to)); len(got) != n || got[0] != "m stopped" {
		t.Errorf("%d failed: %q", len(got), got)
	}
	f.wantNotes("slow stopped")
	if got := r.Stats().DeadLetters; got != (DeadLetters{Stop: n}) {
		t.Errorf("dead letters: %+v", got)
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	s := newSystem(t, Config{Name: "letters", Registerer: reg})
	if _, err := NewSystem(Config{Name: "letters", Registerer: reg}); err == nil {
		t.Error("a second system of that name was accepted on the same registry")
	}
	other := newSystem(t, Config{Registerer: reg})
	if err := other.Stop(t.Context()); err != nil { // and takes nobody else's metrics along
		t.Error(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	r := spawn(t, s, Options{Name: "a", Mailbox: 1, Reserved: 2}, receive[int](func(int) { entered <- struct{}{}; <-leave }))
	tell(t, r, 1)
	<-entered
	tell(t, r, 2)
	if err := r.Tell(3); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	want := `
# HELP ommer_actor_crashes_total Panics of the actor, and starts after one that failed.
# TYPE ommer_actor_crashes_total counter
ommer_actor_crashes_total{actor="a",system="letters"} 0
# HELP ommer_actor_dead_letters_total Messages taken and not handled to their end: the actor panicked (reason panic) or they were discarded at its stop (reason stop).
# TYPE ommer_actor_dead_letters_total counter
ommer_actor_dead_letters_total{actor="a",reason="panic",system="letters"} 0
ommer_actor_dead_letters_total{actor="a",reason="stop",system="letters"} 0
# HELP ommer_actor_mailbox_capacity Places in the mailbox, those reserved for answers included.
# TYPE ommer_actor_mailbox_capacity gauge
ommer_actor_mailbox_capacity{actor="a",system="letters"} 3
# HELP ommer_actor_mailbox_length Messages that wait in the mailbox.
# TYPE ommer_actor_mailbox_length gauge
ommer_actor_mailbox_length{actor="a",system="letters"} 1
# HELP ommer_actor_pool_queue_length Actors that have work and wait for a goroutine.
# TYPE ommer_actor_pool_queue_length gauge
ommer_actor_pool_queue_length{system="letters"} 0
# HELP ommer_actor_received_total Messages taken out of the mailbox.
# TYPE ommer_actor_received_total counter
ommer_actor_received_total{actor="a",system="letters"} 1
# HELP ommer_actor_refused_total Messages refused because the mailbox was full.
# TYPE ommer_actor_refused_total counter
ommer_actor_refused_total{actor="a",system="letters"} 1
# HELP ommer_actor_restarts_total Starts after a crash that worked.
# TYPE ommer_actor_restarts_total counter
ommer_actor_restarts_total{actor="a",system="letters"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	close(leave)
	<-entered
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(reg); n != 0 || err != nil {
		t.Errorf("%d metrics after the stop, %v", n, err)
	}
	newSystem(t, Config{Name: "letters", Registerer: reg}) // the registry is free again
}
