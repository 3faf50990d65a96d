package actor

import (
	"context"
	"log/slog"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receive is a function as an actor.
type receive[M any] func(m M)

func (f receive[M]) Receive(m M) { f(m) }

// newSystem starts a system that is stopped when the test ends.
func newSystem(t testing.TB, c Config) *System {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := NewSystem(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return s
}

// spawn starts an actor of the given value, which is used again after a panic.
func spawn[M any](t testing.TB, s *System, o Options, a Actor[M]) *Ref[M] {
	t.Helper()
	r, err := Spawn(s, o, func(*Ref[M]) (Actor[M], error) { return a, nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tell tells messages that must be taken.
func tell[M any](t testing.TB, r *Ref[M], ms ...M) {
	t.Helper()
	for _, m := range ms {
		if err := r.Tell(m); err != nil {
			t.Fatalf("Tell(%v): %v", m, err)
		}
	}
}
