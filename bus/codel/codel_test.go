package codel_test

import (
	"testing"
	"time"

	"github.com/ommer/ommer/bus/codel"
)

const target = 5 * time.Millisecond

// queue is a simulated queue with one server. Nothing in here is about the clock of the
// machine.
type queue struct {
	gate              *codel.Gate
	service, cost     time.Duration // of an answer and of a refusal
	now, free         time.Time     // when the server is
	waiting           [][2]time.Time
	answered, refused int
	longest           time.Duration // wait
	idle              time.Duration
}

func newQueue(service, cost time.Duration) *queue {
	now := time.Now()
	q := &queue{now: now, free: now, service: service, cost: cost}
	q.gate = codel.NewGate(codel.Always(target), func() int { return len(q.waiting) })
	return q
}

// arrive lets n come, gap apart.
func (q *queue) arrive(n int, gap time.Duration) {
	for range n {
		q.now = q.now.Add(gap)
		for len(q.waiting) > 0 && !q.waiting[0][1].After(q.now) {
			joined, taken := q.waiting[0][0], q.waiting[0][1]
			q.waiting = q.waiting[1:]
			q.gate.Took(taken, joined)
			q.longest = max(q.longest, taken.Sub(joined))
		}
		if q.free.Before(q.now) {
			q.idle += q.now.Sub(q.free)
			q.free = q.now
		}
		if q.gate.Closed(q.now) {
			q.refused++
			q.free = q.free.Add(q.cost)
			continue
		}
		q.answered++
		q.waiting = append(q.waiting, [2]time.Time{q.now, q.free})
		q.free = q.free.Add(q.service)
	}
}

func TestGateStaysOpenBelowCapacity(t *testing.T) {
	q := newQueue(100*time.Microsecond, 0)
	q.arrive(20000, 130*time.Microsecond)
	if q.refused > 0 {
		t.Errorf("%d refused", q.refused)
	}
}

// Bursts that take 90 ms to work off, again and again, pass.
func TestGateStaysOpenForBursts(t *testing.T) {
	q := newQueue(100*time.Microsecond, 0)
	for range 20 {
		q.arrive(900, 0)
		q.arrive(500, 400*time.Microsecond)
	}
	if q.refused > 0 {
		t.Errorf("%d refused, %d answered", q.refused, q.answered)
	}
}

// A few questions now and then, for which the machine has no time at once: all of them wait
// for longer than the target, but not because of those before them.
func TestGateStaysOpenOnABusyMachine(t *testing.T) {
	waiting := 0
	g := codel.NewGate(codel.Always(target), func() int { return waiting })
	now := time.Now()
	for range 100 {
		joined := now.Add(20 * time.Millisecond)
		now = joined.Add(2 * target)
		for waiting = 8; waiting > 0; {
			waiting--
			if g.Took(now, joined); g.Closed(now) {
				t.Fatal("closed")
			}
		}
	}
}

// Whatever more comes than can be answered, the server is busy and nobody waits long.
func TestGateEndsAStandingQueue(t *testing.T) {
	for _, times := range []float64{1.1, 1.5, 3} {
		q := newQueue(100*time.Microsecond, 5*time.Microsecond)
		gap := time.Duration(float64(q.service) / times)
		n := int(time.Second / gap)
		q.arrive(2*n, gap) // until it has been noticed and worked off
		q.answered, q.refused, q.longest, q.idle = 0, 0, 0, 0
		q.arrive(5*n, gap)
		t.Logf("at %.1f times the capacity: %d answered, %d refused, waited up to %v, idle for %v", times, q.answered, q.refused, q.longest, q.idle)
		if q.refused == 0 || q.idle > 50*time.Millisecond {
			t.Errorf("at %.1f times the capacity: %d refused, idle for %v of 5 s", times, q.refused, q.idle)
		}
		if q.longest > 2*target {
			t.Errorf("at %.1f times the capacity: waited up to %v", times, q.longest)
		}
	}
}

// A gate that closed opens, though nobody was taken from the queue since.
func TestGateOpensAgain(t *testing.T) {
	q := newQueue(100*time.Microsecond, 0)
	q.arrive(30000, 50*time.Microsecond)
	if q.refused == 0 {
		t.Fatal("nothing refused at twice the capacity")
	}
	q.now, q.refused = q.now.Add(time.Minute), 0
	q.arrive(500, 10*time.Microsecond) // a burst
	if q.refused > 0 {
		t.Errorf("%d of a burst refused after a minute of silence", q.refused)
	}
}

func TestGateWithoutATarget(t *testing.T) {
	g := codel.NewGate(codel.Always(-1), func() int { return 1000 })
	now := time.Now()
	for range 1000 {
		now = now.Add(time.Millisecond)
		if g.Took(now, now.Add(-time.Hour)); g.Closed(now) {
			t.Fatal("closed")
		}
	}
}
