package codel_test

import (
	"testing"
	"time"

	"github.com/ommer/ommer/bus/codel"
)

const target = 5 * time.Millisecond

// queue is a simulated queue with one server: each takes service to answer, and
// refusing costs a tenth of it. Nothing in here is about the clock of the machine.
type queue struct {
	gate                     codel.Gate
	now                      time.Time
	answered, refused        int
	longest                  time.Duration // wait of an answered one
	service, cost, untilIdle time.Duration
}

func newQueue(service time.Duration) *queue {
	return &queue{gate: codel.Gate{Target: target}, now: time.Unix(1e9, 0), service: service, cost: service / 10}
}

// arrive lets n come, gap apart.
func (q *queue) arrive(n int, gap time.Duration) {
	for range n {
		q.now = q.now.Add(gap)
		q.untilIdle = max(0, q.untilIdle-gap)
		waited := q.untilIdle
		if q.gate.Refuse(q.now.Add(waited), waited) {
			q.refused++
			q.untilIdle += q.cost
			continue
		}
		q.answered++
		q.longest = max(q.longest, waited)
		q.untilIdle += q.service
	}
}

func TestGatePassesWhatIsBelowCapacity(t *testing.T) {
	q := newQueue(100 * time.Microsecond)
	q.arrive(20000, 130*time.Microsecond)
	if q.refused > 0 {
		t.Errorf("%d refused", q.refused)
	}
}

// A burst that takes 90 ms to work off, again and again, passes.
func TestGatePassesBursts(t *testing.T) {
	q := newQueue(100 * time.Microsecond)
	for range 20 {
		q.arrive(900, 0) // 90 ms of work
		q.arrive(500, 400*time.Microsecond)
	}
	if q.refused > 0 {
		t.Errorf("%d refused, %d answered", q.refused, q.answered)
	}
}

func TestGateEndsAStandingQueue(t *testing.T) {
	for _, times := range []float64{1.2, 1.5, 3} {
		q := newQueue(100 * time.Microsecond)
		gap := time.Duration(float64(q.service) / times)
		n := int(time.Second / gap)
		q.arrive(n, gap) // until it has been noticed
		q.answered, q.refused, q.longest = 0, 0, 0
		q.arrive(5*n, gap)
		capacity := int(5 * time.Second / q.service)
		spent := float64(q.refused) * float64(q.cost) / float64(q.service)
		if q.answered < int(0.95*(float64(capacity)-spent)) {
			t.Errorf("at %.1f times the capacity: %d answered of a capacity of %d, %.0f of which refusals took", times, q.answered, capacity, spent)
		}
		if q.longest > 2*target {
			t.Errorf("at %.1f times the capacity: who was answered waited up to %v", times, q.longest)
		}
	}
}

func TestGateForgetsAfterAPause(t *testing.T) {
	q := newQueue(100 * time.Microsecond)
	q.arrive(30000, 50*time.Microsecond)
	if q.refused == 0 {
		t.Fatal("nothing refused at twice the capacity")
	}
	q.now, q.untilIdle, q.refused = q.now.Add(time.Minute), 0, 0
	q.arrive(500, 10*time.Microsecond) // a burst
	if q.refused > 0 {
		t.Errorf("%d of a burst refused after a minute of silence", q.refused)
	}
}

func TestGateWithoutATarget(t *testing.T) {
	g := codel.Gate{Target: -1}
	now := time.Unix(1e9, 0)
	for range 1000 {
		now = now.Add(time.Millisecond)
		if g.Refuse(now, time.Hour) {
			t.Fatal("refused")
		}
	}
}

// backlog is how much waits.
type backlog int

func (b backlog) Pending() (int, int, error) { return int(b), 0, nil }

// A Line finds out how long they wait from nothing but how many there are.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		name    string
		pending backlog
		each    time.Duration // between two that are taken
		want    bool
	}{
		{"nobody waits", 0, time.Millisecond, false},
		{"they wait for 4 ms", 40, 100 * time.Microsecond, false},
		{"they wait for 9 ms", 90, 100 * time.Microsecond, false}, // above the target, refused from twice of it on
		{"they wait for 11 ms", 110, 100 * time.Microsecond, true},
		{"they wait for a second", 10000, 100 * time.Microsecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := codel.Line{Gate: codel.Gate{Target: target}}
			now, refused := time.Unix(1e9, 0), false
			for range 40000 {
				now = now.Add(c.each)
				refused = l.Refuse(now, c.pending)
			}
			if refused != c.want {
				t.Errorf("refused %v, want %v", refused, c.want)
			}
		})
	}
}
