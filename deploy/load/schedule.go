package load

import (
	"math"
	"sort"
	"sync/atomic"
	"time"
)

// schedule is when the requests of an open loop are due, whatever becomes of those
// before them. Each is a ticket, taken by the first connection that is free: one that
// has to wait for its time, or, when none was free at its time, one that is late
// already. Latency counts from when a request was due, so that a server that stalls
// has the requests that it kept from being sent counted against it.
//
// During the ramp the rate grows in proportion to the connections.
type schedule struct {
	start    time.Time
	interval float64 // between requests, ns
	ramp     float64 // ns
	next     atomic.Int64
}

func newSchedule(start time.Time, perSecond float64, ramp time.Duration) *schedule {
	return &schedule{start: start, interval: float64(time.Second) / perSecond, ramp: float64(ramp)}
}

// take returns when the next ticket is due.
func (s *schedule) take() time.Time { return s.at(s.next.Add(1) - 1) }

// at is when ticket k is due. While the rate grows, t^2 / (2 * ramp * interval)
// tickets are due until t.
func (s *schedule) at(k int64) time.Time {
	t := float64(k) * s.interval
	if t < s.ramp/2 {
		t = math.Sqrt(2 * s.ramp * t)
	} else {
		t += s.ramp / 2
	}
	return s.start.Add(time.Duration(t))
}

// before is how many tickets are due before t.
func (s *schedule) before(t time.Time) int64 {
	most := int(float64(t.Sub(s.start))/s.interval) + 2
	return int64(sort.Search(max(most, 0), func(k int) bool { return !s.at(int64(k)).Before(t) }))
}
