package codel

import (
	"sync/atomic"
	"time"
)

const (
	// DefaultTarget is the wait that may stand, if nothing else is said.
	DefaultTarget = 5 * time.Millisecond
	// interval is how long the least wait must have been above the target: some
	// times what a burst takes, and soon enough for who waits.
	interval = 100 * time.Millisecond
)

// Gate stands before a queue. Whoever wants to join asks Closed, from any goroutine; who
// takes from the queue tells it by Took, one at a time.
type Gate struct {
	target func() time.Duration
	length func() int
	begin  time.Time
	until  atomic.Int64 // closed until then, in ns after begin

	// Those of Took.
	start, end time.Time     // of this interval
	taken      int           // in this interval
	least      time.Duration // wait in this interval
	each       time.Duration // time for each that was taken in the last interval
	standing   bool
	closed     bool // in this interval
}

// Always is a target that does not change.
func Always(target time.Duration) func() time.Duration {
	return func() time.Duration { return target }
}

// NewGate returns an open Gate for a queue with a length. It calls target and length from
// Took, length only when somebody has waited for longer than the target. A target of 0 or
// less keeps the Gate open.
func NewGate(target func() time.Duration, length func() int) *Gate {
	return &Gate{target: target, length: length, begin: time.Now()}
}

// Closed says whether who comes now is refused.
func (g *Gate) Closed(now time.Time) bool {
	until := g.until.Load()
	return until != 0 && int64(now.Sub(g.begin)) < until
}

// Took notes that who joined the queue at a time is taken from it now.
func (g *Gate) Took(now, joined time.Time) {
	target := g.target()
	if target <= 0 {
		return
	}
	waited := now.Sub(joined)
	if waited > target && g.length() == 0 {
		// The last one leaves a queue that does not stand, however long it was kept
		// waiting (RFC 8289 section 5, dodequeue, has the same for the last packet).
		waited = 0
	}
	if now.After(g.end) {
		// An interval that ended long ago says nothing of now.
		recent := now.Sub(g.end) < interval
		g.standing = recent && (g.least > target || g.standing && g.closed)
		if g.taken > 0 {
			g.each = now.Sub(g.start) / time.Duration(g.taken)
		}
		g.start, g.end, g.taken = now, now.Add(interval), 0
		g.least, g.closed = waited, false
	}
	g.taken++
	g.least = min(g.least, waited)
	if !g.standing {
		return
	}
	// Who comes now waits for all that are there. The gate opens again when half of
	// the target is left, so that there is work all the time.
	if wait := time.Duration(g.length()) * g.each; wait > target {
		g.closed = true
		g.until.Store(int64(now.Sub(g.begin) + wait - target/2))
	}
}
