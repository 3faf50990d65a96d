package actor

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
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
	tell(t, r, failed{"slow", to})
	for range n {
		tell(t, r, failed{"m", to})
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

func TestActors(t *testing.T) {
	s := newSystem(t, Config{})
	spawn(t, s, Options{Name: "a", Mailbox: 7}, receive[int](func(int) {}))
	spawn(t, s, Options{Name: "b"}, receive[int](func(int) {}))
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequest("GET", "/actors", nil))
	var got []Info
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" || got[0].MailboxCap != 7 || got[1].MailboxCap != DefaultMailbox {
		t.Errorf("got %s", rec.Body)
	}
	if strings.Contains(rec.Body.String(), "last_failure") {
		t.Errorf("a failure of actors that have not failed: %s", rec.Body)
	}
	rec = httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequest("POST", "/actors", nil))
	if rec.Code != 405 || rec.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d, Allow %q", rec.Code, rec.Header().Get("Allow"))
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	s := newSystem(t, Config{Registerer: reg})
	if _, err := NewSystem(Config{Registerer: reg}); err == nil {
		t.Error("a second system on the same registry was accepted")
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	r := spawn(t, s, Options{Name: "a", Mailbox: 1}, receive[int](func(int) { entered <- struct{}{}; <-leave }))
	tell(t, r, 1)
	<-entered
	tell(t, r, 2)
	if err := r.Tell(3); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	want := `
# HELP ommer_actor_dead_letters_total Messages taken and not handled to their end: the actor panicked (reason panic) or they were discarded at its stop (reason stop).
# TYPE ommer_actor_dead_letters_total counter
ommer_actor_dead_letters_total{actor="a",reason="panic"} 0
ommer_actor_dead_letters_total{actor="a",reason="stop"} 0
# HELP ommer_actor_mailbox_length Messages that wait in the mailbox.
# TYPE ommer_actor_mailbox_length gauge
ommer_actor_mailbox_length{actor="a"} 1
# HELP ommer_actor_pool_queue_length Actors and sessions that have work and wait for a goroutine.
# TYPE ommer_actor_pool_queue_length gauge
ommer_actor_pool_queue_length 0
# HELP ommer_actor_received_total Messages taken out of the mailbox.
# TYPE ommer_actor_received_total counter
ommer_actor_received_total{actor="a"} 1
# HELP ommer_actor_refused_total Messages refused because the mailbox was full.
# TYPE ommer_actor_refused_total counter
ommer_actor_refused_total{actor="a"} 1
# HELP ommer_actor_restarts_total Restarts after a crash.
# TYPE ommer_actor_restarts_total counter
ommer_actor_restarts_total{actor="a"} 0
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
	newSystem(t, Config{Registerer: reg}) // the registry is free again
}
