package actor

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fickle panics when told to, and starts when start says nothing else.
type fickle struct {
	t     *testing.T
	start func(n int) error // may be nil
	on    map[string]func()
	alive *incarnation

	mu     sync.Mutex
	starts int
	notes  []string
}

func (f *fickle) note(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, s)
}

func (f *fickle) started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.starts
}

// incarnation is one value of a fickle actor.
type incarnation struct {
	f *fickle
	n int
}

func (i *incarnation) Receive(m failed) {
	if i.f.alive != i {
		i.f.t.Errorf("value %d received %q when it was dead", i.n, m.name)
	}
	if f := i.f.on[m.name]; f != nil {
		f()
	}
	i.f.note(m.name)
}

func (i *incarnation) Crashed(err error) {
	if i.f.alive != i || !errors.Is(err, ErrPanic) {
		i.f.t.Errorf("value %d: Crashed(%v)", i.n, err)
	}
	i.f.note("crashed")
	i.f.alive = nil
	if f := i.f.on["crashed"]; f != nil {
		f()
	}
}

func (i *incarnation) Stopped() {
	i.f.note("stopped")
	if f := i.f.on["stopped"]; f != nil {
		f()
	}
}

func (f *fickle) spawn(s *System, o Options) *Ref[failed] {
	f.t.Helper()
	r, err := Spawn(s, o, func(*Ref[failed]) (Actor[failed], error) {
		f.mu.Lock()
		f.starts++
		n := f.starts
		f.mu.Unlock()
		if f.start != nil {
			if err := f.start(n); err != nil {
				return nil, err
			}
		}
		f.alive = &incarnation{f, n}
		return f.alive, nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fickle) wantNotes(want string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := strings.Join(f.notes, " "); got != want {
		f.t.Errorf("notes:\n%s, want\n%s", got, want)
	}
}

func boom() { panic("boom") }

func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newSystem(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		to := make(chan string, 10)
		f := &fickle{t: t, on: map[string]func(){"bad": boom}}
		r := f.spawn(s, Options{Name: "a", Mailbox: 2})
		tell(t, r, failed{name: "good", to: to}, failed{name: "bad", to: to})
		synctest.Wait()
		if got := <-to; got != "bad panic" {
			t.Errorf("failed: %q, want the message that was being received", got)
		}
		i := r.Stats()
		if i.State != "restarting" || i.LastFailure != "actor: panic: boom" || i.LastFailureAt.IsZero() || i.DeadLetters != (DeadLetters{Panic: 1}) {
			t.Errorf("during the pause: %+v", i)
		}
		// Mail stays in the mailbox during the pause, as much as fits.
		tell(t, r, failed{name: "1", to: to}, failed{name: "2", to: to})
		if err := r.Tell(failed{name: "3", to: to}); !errors.Is(err, ErrFull) {
			t.Errorf("Tell to a full mailbox in the pause: %v, want ErrFull", err)
		}
		synctest.Wait()
		f.wantNotes("good crashed")
		time.Sleep(firstPause)
		synctest.Wait()
		f.wantNotes("good crashed 1 2")
		if i := r.Stats(); i.State != "idle" || i.Restarts != 1 || f.started() != 2 {
			t.Errorf("after the pause: %d starts, %+v", f.started(), i)
		}
		for _, part := range []string{"level=ERROR", "actor=a", "boom", "restart_in=", "incarnation"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log has no %q: %s", part, &log)
			}
		}
	})
}

// TestRestartPauses: the pauses grow from 10 ms to 5 s, and begin anew after a
// while of health.
func TestRestartPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, Config{Logger: slog.New(slog.DiscardHandler)})
		f := &fickle{t: t, on: map[string]func(){"bad": boom}}
		r := f.spawn(s, Options{Name: "a"})
		crash := func() time.Duration {
			began, starts := time.Now(), f.started()
			tell(t, r, failed{name: "bad", to: make(chan string, 1)})
			for f.started() == starts {
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			return time.Since(began)
		}
		for n := range 14 {
			longest := min(firstPause<<n, maxPause)
			if got := crash(); got < longest/2 || got > longest+time.Millisecond {
				t.Errorf("pause %d: %v, want %v to %v", n+1, got, longest/2, longest)
			}
		}
		time.Sleep(healthy - time.Second)
		if got := crash(); got < maxPause/2 {
			t.Errorf("pause after less than %v of health: %v, want over %v", healthy, got, maxPause/2)
		}
		time.Sleep(healthy)
		if got := crash(); got > firstPause+time.Millisecond {
			t.Errorf("pause after %v of health: %v, want at most %v", healthy, got, firstPause)
		}
	})
}

// TestRestartFails: a start that fails, panics or ends the goroutine is a crash
// too, and is tried again.
func TestRestartFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, Config{Logger: slog.New(slog.DiscardHandler)})
		f := &fickle{t: t, on: map[string]func(){"bad": boom}}
		f.start = func(n int) error {
			switch n {
			case 2:
				return errors.New("not yet")
			case 3:
				panic("not yet either")
			case 4:
				runtime.Goexit()
			}
			return nil
		}
		r := f.spawn(s, Options{Name: "a"})
		tell(t, r, failed{name: "bad", to: make(chan string, 1)}, failed{name: "good", to: make(chan string, 1)})
		time.Sleep(time.Second)
		synctest.Wait()
		f.wantNotes("crashed good")
		if i := r.Stats(); f.started() != 5 || i.Restarts != 1 || i.DeadLetters != (DeadLetters{Panic: 1}) || i.LastFailure != "actor: panic: runtime.Goexit called" {
			t.Errorf("%d starts, %+v", f.started(), i)
		}
	})
}

func TestGoexitInReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, Config{Runners: 1, Logger: slog.New(slog.DiscardHandler)})
		f := &fickle{t: t, on: map[string]func(){"bad": runtime.Goexit}}
		r := f.spawn(s, Options{Name: "a"})
		to := make(chan string, 1)
		tell(t, r, failed{name: "bad", to: to}, failed{name: "good", to: to})
		if got := <-to; got != "bad panic" {
			t.Errorf("got %q", got)
		}
		time.Sleep(firstPause)
		synctest.Wait()
		f.wantNotes("crashed good")
	})
}

// TestGoexitElsewhere: what else the runtime calls may end its goroutine too, and
// nobody is left waiting for that: not who told, not who stops.
func TestGoexitElsewhere(t *testing.T) {
	for _, where := range []string{"crashed", "stopped", "fail", "discard"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, Config{Runners: 1, Logger: slog.New(slog.DiscardHandler)})
				to := make(chan string, 10)
				f := &fickle{t: t, on: map[string]func(){"bad": boom, where: runtime.Goexit}}
				rude := func(name string) failed { return failed{name, to, runtime.Goexit} }
				bad, notes := failed{name: "bad", to: to}, "crashed good stopped"
				switch where {
				case "fail":
					bad = rude("bad")
				case "discard":
					f.start = func(n int) error {
						if n > 1 {
							return errors.New("reason")
						}
						return nil
					}
					notes = "crashed"
				}
				r := f.spawn(s, Options{Name: "a"})
				tell(t, r, bad)
				if where == "discard" { // there is never another value to receive these
					tell(t, r, rude("1"), rude("2"))
				} else {
					tell(t, r, failed{name: "good", to: to})
					time.Sleep(firstPause)
				}
				synctest.Wait()
				if err := s.Stop(context.Background()); err != nil {
					t.Error(err)
				}
				f.wantNotes(notes)
				close(to)
				want := []string{"bad panic"}
				if where == "discard" {
					want = append(want, "1 stopped", "2 stopped")
				}
				if got := slices.Collect(chanValues(to)); !slices.Equal(got, want) {
					t.Errorf("failed: %q, want %q", got, want)
				}
				if i := r.Stats(); i.DeadLetters.Total() != uint64(len(want)) || i.State != "stopped" {
					t.Errorf("%+v", i)
				}
			})
		})
	}
}

// TestContained: panics in what the runtime calls besides Receive change nothing
// for anybody else.
func TestContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newSystem(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		f := &fickle{t: t, on: map[string]func(){"bad": boom, "crashed": boom, "stopped": boom}}
		r := f.spawn(s, Options{Name: "a"})
		to := make(chan string)
		close(to) // so that Fail panics
		tell(t, r, failed{name: "bad", to: to}, failed{name: "good", to: to})
		time.Sleep(firstPause)
		synctest.Wait()
		f.wantNotes("crashed good")
		r.Stop()
		<-r.Done()
		f.wantNotes("crashed good stopped")
		for _, what := range []string{"Fail", "Crashed", "Stopped"} {
			if !strings.Contains(log.String(), "in="+what) {
				t.Errorf("the log does not tell of the panic in %s: %s", what, &log)
			}
		}
	})
}

// TestStopDuringPause: a stop does not wait for the pause. What is in the mailbox
// is received by a new value, or failed when there is none.
func TestStopDuringPause(t *testing.T) {
	for _, tt := range []struct {
		name  string
		mail  []string
		start func(n int) error
		notes string
		fails string
	}{
		{"empty mailbox", nil, nil, "crashed", "bad panic"},
		{"mail", []string{"1", "2"}, nil, "crashed 1 2 stopped", "bad panic"},
		{"mail that panics", []string{"1", "bad", "2"}, nil, "crashed 1 crashed 2 stopped", "bad panic bad panic"},
		{"start fails", []string{"1", "2"}, func(n int) error {
			if n > 1 {
				return errors.New("reason")
			}
			return nil
		}, "crashed", "bad panic 1 stopped 2 stopped"},
		{"start ends its goroutine", []string{"1", "2"}, func(n int) error {
			if n > 1 {
				runtime.Goexit()
			}
			return nil
		}, "crashed", "bad panic 1 stopped 2 stopped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, Config{Logger: slog.New(slog.DiscardHandler)})
				f := &fickle{t: t, on: map[string]func(){"bad": boom}, start: tt.start}
				to := make(chan string, 10)
				r := f.spawn(s, Options{Name: "a"})
				tell(t, r, failed{name: "bad", to: to})
				synctest.Wait()
				for _, m := range tt.mail {
					tell(t, r, failed{name: m, to: to})
				}
				began := time.Now()
				if err := s.Stop(context.Background()); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d != 0 {
					t.Errorf("the stop took %v", d)
				}
				f.wantNotes(tt.notes)
				close(to)
				if got := strings.Join(slices.Collect(chanValues(to)), " "); got != tt.fails {
					t.Errorf("failed: %q, want %q", got, tt.fails)
				}
				if i := r.Stats(); i.State != "stopped" || i.Mailbox != 0 {
					t.Errorf("%+v", i)
				}
			})
		})
	}
}
