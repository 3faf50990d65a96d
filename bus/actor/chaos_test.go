package actor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// order is a message of the chaos: somebody waits for it and counts the outcomes.
type order struct {
	from, n int
	do      deed
	Reply[int]
}

// deed is what an actor does with an order.
type deed int

const (
	answer deed = iota
	keep        // and answer it with the next, or in Stopped or Crashed
	pass        // on to the next actor, which answers
	panicFirst
	panicAfter
	exit // runtime.Goexit
	deeds
)

// place is where incarnations of one chaotic actor work, one after the other.
type place struct {
	t      *testing.T
	inside int // not atomic: the race detector sees two goroutines in here
	last   map[int]int
	next   *Ref[order]
}

type worker struct {
	*place
	kept []order
}

func (w *worker) Receive(o order) {
	if w.inside++; w.inside != 1 {
		w.t.Error("two goroutines inside one actor")
	}
	defer func() { w.inside-- }()
	if o.from >= 0 { // from a sender, not passed on
		if last, ok := w.last[o.from]; ok && o.n <= last {
			w.t.Errorf("from sender %d: %d after %d", o.from, o.n, last)
		}
		w.last[o.from] = o.n
	}
	switch o.do {
	case answer:
		for _, k := range w.kept {
			k.Answer(k.n)
		}
		w.kept = nil
	case keep:
		w.kept = append(w.kept, o)
		return
	case pass:
		if w.next != nil {
			o.from, o.do = -1, answer
			if err := w.next.Tell(o); err != nil {
				o.Fail(err)
			}
			return
		}
	case panicFirst:
		panic("chaos")
	case panicAfter:
		o.Answer(o.n)
		panic("chaos")
	case exit:
		runtime.Goexit()
	}
	o.Answer(o.n)
}

func (w *worker) Stopped()          { w.fail(ErrStopped) }
func (w *worker) Crashed(err error) { w.fail(err) }

func (w *worker) fail(err error) {
	for _, k := range w.kept {
		k.Fail(err)
	}
	w.kept = nil
}

// TestChaos: whatever panics, fills or stops, everyone who asked is answered
// exactly once, messages of one sender are received in order, and the stop ends.
func TestChaos(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, seed) })
		})
	}
}

func chaos(t *testing.T, seed uint64) {
	const senders, actors, each = 4, 3, 2000
	s, err := NewSystem(Config{Runners: 3, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	refs := make([]*Ref[order], actors)
	for i := range refs {
		p := &place{t: t, last: map[int]int{}}
		if i > 0 {
			p.next = refs[i-1]
		}
		starts := 0
		refs[i], err = Spawn(s, Options{Name: fmt.Sprint("a", i), Mailbox: 1 << (3 * (i + 1))}, func(*Ref[order]) (Actor[order], error) {
			if starts++; starts%5 == 4 {
				return nil, errors.New("chaos")
			}
			return &worker{place: p}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	outcomes := make([]atomic.Int32, senders*each)
	var answered atomic.Int64
	var wg sync.WaitGroup
	for from := range senders {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(from)))
			for n := range each {
				do := answer
				switch rng.IntN(60) {
				case 0:
					do = deed(rng.IntN(int(deeds)))
				case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
					do = keep
				case 11, 12, 13, 14, 15, 16, 17, 18, 19, 20:
					do = pass
				}
				AskFunc(refs[rng.IntN(actors)], time.Hour,
					func(r Reply[int]) order { return order{from, n, do, r} },
					func(_ int, err error) {
						outcomes[from*each+n].Add(1)
						if err == nil {
							answered.Add(1)
						}
					})
				if rng.IntN(8) == 0 {
					time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
				}
			}
		})
	}
	// Stop in the middle of it, which takes some 2.5 s: one actor by itself,
	// then all of them, every other time without the patience to drain.
	time.Sleep(time.Second)
	refs[seed%actors].Stop()
	time.Sleep(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if seed%2 == 0 {
		cancel()
	}
	if err := s.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Stop: %v", err)
	}
	wg.Wait()
	for i := range outcomes {
		if n := outcomes[i].Load(); n != 1 {
			t.Errorf("question %d of sender %d has %d outcomes", i%each, i/each, n)
		}
	}
	restarts := uint64(0)
	for _, r := range refs {
		restarts += r.Stats().Restarts
	}
	if restarts == 0 || answered.Load() == 0 {
		t.Error("not what the test is for")
	}
	t.Logf("%d of %d answered, %d restarts", answered.Load(), senders*each, restarts)
}
