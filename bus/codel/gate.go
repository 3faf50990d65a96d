package codel

import "time"

const (
	// DefaultTarget is the wait that may stand, if nothing else is said.
	DefaultTarget = 5 * time.Millisecond
	// interval is how long the least wait must have been above the target: some
	// times what a burst takes, and soon enough for who waits.
	interval = 100 * time.Millisecond
)

// Gate decides who of a queue is refused. It is told of each as it is taken.
type Gate struct {
	// Target is the wait that may stand. 0 or less refuses nobody.
	Target time.Duration

	least    time.Duration // in this interval
	until    time.Time     // the end of this interval
	standing bool          // the least wait of the last interval was above Target
}

// Refuse says whether to refuse who is taken from the queue now and has waited so long.
func (g *Gate) Refuse(now time.Time, waited time.Duration) bool {
	if g.Target <= 0 {
		return false
	}
	if now.After(g.until) {
		// An interval that ended long ago says nothing of now: a pause has emptied
		// the queue, or else this one will tell.
		g.standing = g.least > g.Target && now.Sub(g.until) < interval
		g.least = waited
		g.until = now.Add(interval)
	}
	g.least = min(g.least, waited)
	if g.least <= g.Target {
		g.standing = false
	}
	return g.standing && waited > 2*g.Target
}
