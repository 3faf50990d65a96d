package actor

import (
	"math/rand/v2"
	"time"
)

// The pauses before restarts.
const (
	firstPause = 10 * time.Millisecond
	maxPause   = 5 * time.Second
	// healthy is how long an actor must have run for its earlier crashes to be
	// forgotten. It is longer than the longest pause, so that an actor that
	// crashes on its first message each time is not taken for a healthy one.
	healthy = 2 * maxPause
)

// backoff decides how long a crashed actor pauses: 10 ms, doubled with each crash
// in a row up to 5 s, each shortened by a random part of up to a half, so that
// actors that fell together do not all come back in one moment.
type backoff struct {
	crashes int
	since   time.Time // of the last start that worked
}

func (b *backoff) started(now time.Time) { b.since = now }

// next returns the pause after a crash at now.
func (b *backoff) next(now time.Time) time.Duration {
	if !b.since.IsZero() && now.Sub(b.since) >= healthy {
		b.crashes = 0
	}
	b.since = time.Time{}
	d := maxPause
	if b.crashes < 16 { // firstPause<<16 is beyond maxPause
		d = min(d, firstPause<<b.crashes)
		b.crashes++
	}
	return d - rand.N(d/2+1)
}
