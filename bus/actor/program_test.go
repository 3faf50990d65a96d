package actor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var programs = flag.Int("programs", 200, "how many random programs TestPrograms runs")

// TestPrograms runs random programs: goroutines that spawn, tell, ask and stop
// actors, which answer, keep, pass on, ask each other, panic and end. The ledger
// says what must hold whatever they do. The time is not real, so that pauses and
// deadlines come in any order and cost nothing.
func TestPrograms(t *testing.T) {
	var all outcomes
	for seed := range uint64(*programs) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { all.add(run(t, random(seed))) })
		})
	}
	if a := all; min(a.Answered, a.Late, a.Refused, a.Panicked, a.Discarded, a.Restarts, a.Failed, a.Spawned) == 0 {
		t.Errorf("something never happens in these programs: %+v", all)
	}
	t.Logf("%+v", all)
}

// FuzzPrograms is TestPrograms with programs that the fuzzer makes up.
func FuzzPrograms(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(random(seed))
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		synctest.Test(t, func(t *testing.T) { run(t, program) })
	})
}

// random returns a program of its own for each seed.
func random(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, 200+rng.IntN(1000))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// tape is a program as it is read. Beyond its end it is all zeros.
type tape []byte

// pick returns a number below n.
func (p *tape) pick(n int) int {
	if len(*p) == 0 {
		return 0
	}
	b := (*p)[0]
	*p = (*p)[1:]
	return int(b) % n
}

func (p *tape) pause() time.Duration {
	return []time.Duration{0, time.Millisecond, 7 * time.Millisecond, 100 * time.Millisecond, time.Second, 2 * healthy}[p.pick(6)]
}

func (p *tape) timeout() time.Duration {
	return []time.Duration{time.Millisecond, 30 * time.Millisecond, time.Second, longest}[p.pick(4)]
}

// longest is the longest timeout of a question, and settling how long a program
// is left alone: by then everything that was told has been received, however
// often the actors crash.
const (
	longest  = 10 * time.Minute
	settling = 10 * time.Hour
)

// what an actor does with an order.
type deed int

const (
	answer      deed = iota
	answerTwice      // the second must not count
	keep             // and answer it with the next, or in Stopped or Crashed
	forget           // it, so that the deadline answers
	slow             // keeps a runner for a while
	pass             // on to the next actor, which answers
	askNext          // the next actor, and answer when that has
	panicFirst
	panicAfter
	exit // runtime.Goexit
	stopSelf
	rude    // panics, and then again in Fail
	outcome // of askNext, told by the actor to itself
)

// deeds are what senders choose from, in the frequency that they stand here.
var deeds = []deed{
	answer, answer, answer, answer, answer, answer, answer, answer, answer, answer, answer, answer,
	answerTwice, keep, keep, keep, keep, forget, slow, slow, pass, pass, pass, pass, askNext, askNext, askNext, askNext,
	panicFirst, panicAfter, exit, stopSelf, rude,
}

// scene is a program under way.
type scene struct {
	t     *testing.T
	sys   *System
	slots []slot
	done  atomic.Bool // the system is about to be stopped
	hurry bool        // and not to drain; set before done

	ids     atomic.Int32
	mu      sync.Mutex
	places  []*place
	letters []*letter
}

// slot is where one actor lives after the other, under one name.
type slot struct {
	place atomic.Pointer[place]
}

// run runs a program to its end and returns what came of it.
func run(t *testing.T, program []byte) outcomes {
	p := tape(program)
	sys, err := NewSystem(Config{Runners: 1 + p.pick(3), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, sys: sys, slots: make([]slot, 1+p.pick(4))}
	for i := range s.slots {
		s.spawn(i, &p)
	}
	early, patient := p.pick(3) == 0, p.pick(2) == 0
	at := p.pause()
	var senders sync.WaitGroup
	n := 1 + p.pick(4)
	for from := range n {
		own := p[len(p)*from/n : len(p)*(from+1)/n]
		senders.Go(func() { s.send(from, own) })
	}
	if early { // while they send
		time.Sleep(at)
	} else {
		senders.Wait()
		time.Sleep(settling)
		s.settled()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if !patient {
		cancel()
	}
	s.mu.Lock()
	s.hurry = !patient
	s.done.Store(true)
	for _, pl := range s.places {
		pl.endsWith(s)
	}
	s.mu.Unlock()
	if err := sys.Stop(ctx); err != nil && (patient || !errors.Is(err, context.Canceled)) {
		t.Errorf("Stop: %v", err)
	}
	senders.Wait()
	time.Sleep(longest) // for questions that an actor has forgotten
	return s.audit()
}

// spawn has a slot lived in, unless it is.
func (s *scene) spawn(i int, p *tape) {
	o := Options{Name: fmt.Sprint("a", i), Mailbox: []int{1, 2, 8, 64}[p.pick(4)], Reserved: p.pick(4)}
	pl := &place{id: int(s.ids.Add(1)), scene: s, slot: i, reserved: int64(o.Reserved), last: map[int]int{}, badStarts: uint8(p.pick(128)), manners: p.pick(16)}
	pl.endsWith(s)
	r, err := Spawn(s.sys, o, pl.start)
	switch {
	case err == nil:
	case errors.Is(err, ErrName), errors.Is(err, ErrStopped) && s.done.Load():
		return
	default:
		s.t.Errorf("Spawn: %v", err)
		return
	}
	pl.limit = int64(o.Mailbox + o.Reserved)
	pl.ref.Store(r)
	s.mu.Lock()
	s.places = append(s.places, pl)
	pl.endsWith(s)
	s.mu.Unlock()
	s.slots[i].place.Store(pl)
}

// send does what a tape says, as one goroutine.
func (s *scene) send(from int, p tape) {
	for n := 0; len(p) > 0; n++ {
		step, i := p.pick(16), p.pick(len(s.slots))
		to := s.slots[i].place.Load()
		do := deeds[p.pick(len(deeds))]
		switch step {
		case 0, 1, 2, 3:
			s.tell(to, s.letter(to, from, n, do))
		case 4, 5, 6, 7:
			s.askFunc(to, s.letter(to, from, n, do), p.timeout())
		case 8, 9:
			s.ask(to, s.letter(to, from, n, do), p.timeout())
		case 10, 11: // more than fits
			for range p.pick(100) {
				s.tell(to, s.letter(to, from, n, answer))
				n++
			}
		case 12, 13, 14:
			time.Sleep(p.pause())
		case 15:
			if p.pick(4) == 0 {
				to.stop()
			}
			s.spawn(i, &p)
		}
		to.look()
	}
}

func (s *scene) tell(to *place, l *letter) {
	l.sent(to.ref.Load().Tell(order{letter: l}))
}

func (s *scene) askFunc(to *place, l *letter, timeout time.Duration) {
	asked := time.Now()
	l.asked = true
	AskFunc(to.ref.Load(), timeout,
		func(r Reply[int]) order { return order{l, r} },
		func(got int, err error) { l.outcome(got, err, time.Since(asked), timeout) })
}

func (s *scene) ask(to *place, l *letter, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	asked := time.Now()
	l.asked = true
	got, err := Ask(ctx, to.ref.Load(), func(r Reply[int]) order { return order{l, r} })
	l.outcome(got, err, time.Since(asked), timeout)
}
