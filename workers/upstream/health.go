package upstream

import (
	"errors"
	"sync"
	"time"
)

// The life of a node as seen from here: unknown until it was first asked, then up
// or down. A node that is down is asked after all others until its penalty is over,
// and then has its place back; the next failure doubles the penalty.
const (
	failuresUntilDown = 3 // in a row; a false answer or one to the first call counts as all of them
	firstPenalty      = 500 * time.Millisecond
	longestPenalty    = 10 * time.Second
)

type state uint8

const (
	unknown state = iota
	up
	down
)

// health is a node's state. Its methods report whether the state changed, so that
// the change can be logged once.
type health struct {
	mu       sync.Mutex
	state    state
	failures int           // in a row
	penalty  time.Duration // the last one given, 0 while up
	until    time.Time     // end of the penalty
	since    time.Time     // of the state down
	err      error         // why it is down
}

var errNotAsked = errors.New("not asked yet")

// succeeded records an answer that was worth having. It returns how long the node
// was down.
func (h *health) succeeded(now time.Time) (changed bool, downFor time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rise(now)
}

func (h *health) rise(now time.Time) (changed bool, downFor time.Duration) {
	changed = h.state != up
	if h.state == down {
		downFor = now.Sub(h.since)
	}
	h.state, h.failures, h.penalty, h.until, h.err = up, 0, 0, time.Time{}, nil
	return changed, downFor
}

// polled records an answer to a question in the background. That a node answers at
// all makes good for having been out of reach. It does not make good for false
// answers or for silence when it was asked for blocks: for those the penalty has to
// be over.
func (h *health) polled(now time.Time) (changed bool, downFor time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wasAway := errors.Is(h.err, ErrUnreachable) && !errors.Is(h.err, errNoAnswer)
	switch {
	case h.state == up:
		if wasAway {
			h.failures, h.err = 0, nil
		}
		return false, 0
	case h.state == down && !wasAway && now.Before(h.until):
		return false, 0
	}
	return h.rise(now)
}

// failed records a failure.
func (h *health) failed(now time.Time, err error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures++
	h.err = err
	if h.state == up && h.failures < failuresUntilDown && !errors.Is(err, ErrUntrue) {
		return false
	}
	changed = h.state != down
	if changed {
		h.since = now
	}
	// The many that were under way when it went down are one failure.
	if changed || !now.Before(h.until) {
		h.penalty = min(max(2*h.penalty, firstPenalty), longestPenalty)
		h.until = now.Add(h.penalty)
	}
	h.state = down
	return changed
}

// last reports whether the node is to be asked after the others.
func (h *health) last(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state == down && now.Before(h.until)
}

// reason is nil when the node is up, else why it is not.
func (h *health) reason() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.state {
	case up:
		return nil
	case unknown:
		return errNotAsked
	default:
		return h.err
	}
}
