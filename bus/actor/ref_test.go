package actor

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestTell(t *testing.T) {
	s := newSystem(t, Config{})
	entered, leave := make(chan struct{}), make(chan struct{})
	var got []int
	r := spawn(t, s, Options{Name: "a", Mailbox: 3, Reserved: 2}, receive[int](func(m int) {
		if m == 0 {
			close(entered)
			<-leave
		}
		got = append(got, m)
	}))
	tell(t, r, 0)
	<-entered // the message being received takes no place
	tell(t, r, 1, 2, 3)
	if err := r.Tell(9); !errors.Is(err, ErrFull) {
		t.Errorf("Tell to a full mailbox: %v, want ErrFull", err)
	}
	for _, m := range []int{4, 5} {
		if err := r.TellReserved(m); err != nil {
			t.Errorf("TellReserved(%d): %v", m, err)
		}
	}
	if err := r.TellReserved(9); !errors.Is(err, ErrFull) {
		t.Errorf("TellReserved with no place left: %v, want ErrFull", err)
	}
	i := r.Stats()
	if i.State != "running" || i.Mailbox != 5 || i.MailboxCap != 5 || i.Reserved != 2 || i.Received != 1 || i.Refused != 2 {
		t.Errorf("Stats = %+v", i)
	}
	close(leave)
	r.Stop()
	<-r.Done()
	if err := r.Tell(9); !errors.Is(err, ErrStopped) {
		t.Errorf("Tell after the stop: %v, want ErrStopped", err)
	}
	if want := []int{0, 1, 2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
	if i := r.Stats(); i.State != "stopped" || i.Received != 6 || i.Name != "a" || r.Name() != "a" {
		t.Errorf("Stats after the stop = %+v", i)
	}
}

func TestSpawnErrors(t *testing.T) {
	s := newSystem(t, Config{})
	a := receive[int](func(int) {})
	spawn(t, s, Options{Name: "taken"}, a)
	reason := errors.New("reason")
	value := func(*Ref[int]) (Actor[int], error) { return a, nil }
	for _, tt := range []struct {
		name    string
		options Options
		start   func(*Ref[int]) (Actor[int], error)
		want    error
	}{
		{"no name", Options{}, value, ErrName},
		{"a name in use", Options{Name: "taken"}, value, ErrName},
		{"a negative mailbox", Options{Name: "a", Mailbox: -1}, value, nil},
		{"negative reserved places", Options{Name: "a", Reserved: -1}, value, nil},
		{"start fails", Options{Name: "a"}, func(*Ref[int]) (Actor[int], error) { return nil, reason }, reason},
		{"start panics", Options{Name: "a"}, func(*Ref[int]) (Actor[int], error) { panic(reason) }, reason},
		{"start returns nothing", Options{Name: "a"}, func(*Ref[int]) (Actor[int], error) { return nil, nil }, errNoActor},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Spawn(s, tt.options, tt.start)
			if r != nil || err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Spawn = %v, %v, want %v", r, err, tt.want)
			}
			if n := len(s.Actors()); n != 1 {
				t.Errorf("%d actors after it, want 1", n)
			}
		})
	}
}

// failed is a message that says what became of it.
type failed struct {
	name string
	to   chan<- string
	then func() // at the end of Fail; may be nil
}

func (m failed) Fail(err error) {
	switch {
	case errors.Is(err, ErrStopped):
		m.to <- m.name + " stopped"
	case errors.Is(err, ErrPanic):
		m.to <- m.name + " panic"
	default:
		m.to <- m.name + " " + err.Error()
	}
	if m.then != nil {
		m.then()
	}
}

func TestSpawnFailsWhatStartHadTold(t *testing.T) {
	s := newSystem(t, Config{})
	to := make(chan string, 1)
	var self *Ref[failed]
	if _, err := Spawn(s, Options{Name: "a"}, func(r *Ref[failed]) (Actor[failed], error) {
		self = r
		tell(t, r, failed{name: "m", to: to})
		return nil, errors.New("reason")
	}); err == nil {
		t.Fatal("Spawn worked")
	}
	if got := <-to; got != "m stopped" {
		t.Errorf("got %q, want it failed with ErrStopped", got)
	}
	<-self.Done()
}

// TestSpawnGoexit: a start that ends the goroutine, as t.FailNow does, leaves no
// actor behind that a stop would wait for.
func TestSpawnGoexit(t *testing.T) {
	s := newSystem(t, Config{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := Spawn(s, Options{Name: "a"}, func(*Ref[int]) (Actor[int], error) { runtime.Goexit(); return nil, nil })
		t.Errorf("Spawn returned %v", err)
	}()
	<-ended
	if got := s.Actors(); len(got) != 0 {
		t.Errorf("left behind: %+v", got)
	}
}

func TestTellSelf(t *testing.T) {
	s := newSystem(t, Config{})
	done := make(chan int, 1)
	r, err := Spawn(s, Options{Name: "a", Mailbox: 1}, func(self *Ref[int]) (Actor[int], error) {
		if err := self.Tell(1); err != nil { // received once start has returned
			return nil, err
		}
		return receive[int](func(m int) {
			if m == 1000 {
				done <- m
				return
			}
			if err := self.Tell(m + 1); err != nil {
				t.Errorf("Tell from Receive: %v", err)
			}
		}), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-done
	if got := r.Stats().Received; got != 1000 {
		t.Errorf("received %d, want 1000", got)
	}
}

// TestReservedAlwaysFindsRoom: an actor that asks whenever it has a reserved place
// gets every answer, while others fill its mailbox as fast as they can.
func TestReservedAlwaysFindsRoom(t *testing.T) {
	const places, questions = 4, 20000
	s := newSystem(t, Config{Runners: 3})
	type mail struct{ answer bool }
	var asker *Ref[mail]
	echo := spawn(t, s, Options{Name: "echo"}, receive[mail](func(m mail) {
		if err := asker.TellReserved(m); err != nil {
			t.Errorf("TellReserved: %v", err)
		}
	}))
	open, asked := 0, 0
	done := make(chan struct{})
	asker = spawn(t, s, Options{Name: "asker", Mailbox: 8, Reserved: places}, receive[mail](func(m mail) {
		if m.answer {
			open--
		}
		for ; open < places && asked < questions; open++ {
			asked++
			tell(t, echo, mail{answer: true})
		}
		if asked == questions && open == 0 {
			asked++
			close(done)
		}
	}))
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if asker.Tell(mail{}) != nil {
						runtime.Gosched()
					}
				}
			}
		})
	}
	wg.Wait()
}

// witness notes what happens to it.
type witness struct {
	on    func(m string)
	notes chan<- string
}

func (w *witness) Receive(m string) {
	if w.on != nil {
		w.on(m)
	}
	w.notes <- m
}
func (w *witness) Stopped()      { w.notes <- "stopped" }
func (w *witness) Crashed(error) { w.notes <- "crashed" }

func TestStopFromReceive(t *testing.T) {
	s := newSystem(t, Config{})
	notes := make(chan string, 10)
	var self *Ref[string]
	self = spawn(t, s, Options{Name: "a"}, &witness{notes: notes, on: func(m string) {
		if m == "stop" {
			tell(t, self, "last")
			self.Stop()
			if err := self.Tell("late"); !errors.Is(err, ErrStopped) {
				t.Errorf("Tell after Stop: %v, want ErrStopped", err)
			}
			if err := self.TellReserved("late"); !errors.Is(err, ErrStopped) {
				t.Errorf("TellReserved after Stop: %v, want ErrStopped", err)
			}
		}
	}})
	tell(t, self, "stop")
	<-self.Done()
	close(notes)
	if got, want := strings.Join(slices.Collect(chanValues(notes)), " "), "stop last stopped"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(s.Actors()) != 0 {
		t.Error("a stopped actor is still listed")
	}
	self.Stop()                                                 // once more does no harm
	spawn(t, s, Options{Name: "a"}, receive[int](func(int) {})) // its name is free
}

func chanValues[T any](ch <-chan T) func(func(T) bool) {
	return func(yield func(T) bool) {
		for v := range ch {
			if !yield(v) {
				return
			}
		}
	}
}

// TestBatchYields: an actor with much mail does not keep another from its own,
// on one runner.
func TestBatchYields(t *testing.T) {
	s := newSystem(t, Config{Runners: 1})
	held := make(chan struct{})
	s.pool.Submit(newJob(func() { <-held })) // until all mail is there
	busy, before := 0, 0
	r1 := spawn(t, s, Options{Name: "busy", Mailbox: 10 * batch}, receive[int](func(int) { busy++ }))
	done := make(chan struct{})
	r2 := spawn(t, s, Options{Name: "other"}, receive[int](func(int) { before = busy; close(done) }))
	for range 10 * batch {
		tell(t, r1, 0)
	}
	tell(t, r2, 0)
	close(held)
	<-done
	if before > batch {
		t.Errorf("the other had to wait for %d messages, want at most %d", before, batch)
	}
}

func TestTellAllocs(t *testing.T) {
	s := newSystem(t, Config{})
	received := make(chan struct{}, 1)
	r := spawn(t, s, Options{Name: "a"}, receive[*ping](func(*ping) { received <- struct{}{} }))
	m := &ping{}
	if n := testing.AllocsPerRun(1000, func() {
		if err := r.Tell(m); err != nil {
			t.Fatal(err)
		}
		<-received
	}); n != 0 {
		t.Errorf("%v allocations to tell and receive a message, want 0", n)
	}
}
