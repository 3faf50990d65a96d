package upstream

import (
	"errors"
	"sync"
	"time"
)

// The life of a node as seen from here: unknown until it was first asked, then up
// or down, which is a circuit breaker. A node that is down is asked after all others
// until its penalty is over. Then one lookup at a time may find out whether it is of use
// again; the next failure doubles the penalty.
const (
	failuresUntilDown = 3 // in a row; a false answer or one to the first call counts as all of them
	firstPenalty      = 500 * time.Millisecond
	longestPenalty    = 10 * time.Second

	// A node that fails more often than not is down too. What it did counts for half
	// after some time.
	leastOutcomes = 20
	outcomeHalf   = 10 * time.Second

	// For false answers there is more to make good, and it is remembered.
	firstUntruth   = 10 * time.Second
	longestUntruth = 10 * time.Minute
	memory         = time.Hour
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
	mu        sync.Mutex
	state     state
	failures  int           // in a row
	good, bad decaying      // outcomes
	penalty   time.Duration // the last one given, 0 while up
	until     time.Time     // end of the penalty
	probing   bool          // after it: somebody finds out
	since     time.Time     // of the state down
	err       error         // why it is down
	untruth   time.Duration // the last penalty for a false answer
	untrueAt  time.Time
}

var errNotAsked = errors.New("not asked yet")

// succeeded records an answer that was worth having. It returns how long the node
// was down.
func (h *health) succeeded(now time.Time) (changed bool, downFor time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.good.add(now, outcomeHalf)
	if h.state == down && errors.Is(h.err, ErrUntrue) && now.Before(h.until) {
		return false, 0 // one of them does not make good for a false one
	}
	h.penalty = 0
	return h.rise(now)
}

func (h *health) rise(now time.Time) (changed bool, downFor time.Duration) {
	changed = h.state != up
	if h.state == down {
		downFor = now.Sub(h.since)
		h.bad = decaying{}
	}
	h.state, h.failures, h.until, h.probing, h.err = up, 0, time.Time{}, false, nil
	return changed, downFor
}

// polled records an answer to a question in the background. That a node answers at
// all makes good for having been out of reach. It does not make good for false
// answers or for silence when it was asked for blocks: for those the penalty has to
// be over, and the next failure brings the node down again.
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
	unproved := h.state == down && !wasAway
	changed, downFor = h.rise(now)
	if unproved {
		h.failures = failuresUntilDown - 1
	}
	return changed, downFor
}

// failed records a failure.
func (h *health) failed(now time.Time, err error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures++
	h.bad.add(now, outcomeHalf)
	untrue := errors.Is(err, ErrUntrue)
	if h.state == down && errors.Is(h.err, ErrUntrue) && !untrue && now.Before(h.until) {
		return false // it has worse to make good for
	}
	h.err = err
	if h.state == up && h.failures < failuresUntilDown && !untrue && !h.failsMostly(now) {
		return false
	}
	changed = h.state != down
	if changed {
		h.since = now
	}
	// The many that were under way when it went down are one failure.
	switch {
	case !changed && now.Before(h.until):
	case untrue:
		if now.Sub(h.untrueAt) > memory {
			h.untruth = 0
		}
		h.untruth, h.untrueAt = min(max(2*h.untruth, firstUntruth), longestUntruth), now
		h.until = now.Add(h.untruth)
	default:
		h.penalty = min(max(2*h.penalty, firstPenalty), longestPenalty)
		h.until = now.Add(h.penalty)
	}
	h.state = down
	return changed
}

func (h *health) failsMostly(now time.Time) bool {
	good, bad := h.good.at(now, outcomeHalf), h.bad.at(now, outcomeHalf)
	return good+bad >= leastOutcomes && bad > good
}

// last reports whether the node is to be asked after the others.
func (h *health) last(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state == down && (h.probing || now.Before(h.until))
}

// probe notes that a node that is down is asked. landed ends it.
func (h *health) probe() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.probing = h.state == down
}

func (h *health) landed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.probing = false
}

// useless is nil when asking the node is of use, else why it is not. One that is set aside
// for a false answer is of use, if there is no other, as long as most of its answers are
// true.
func (h *health) useless(now time.Time) error {
	h.mu.Lock()
	mostly := h.state == down && errors.Is(h.err, ErrUntrue) && !errors.Is(h.err, errChain) &&
		h.good.at(now, outcomeHalf) > h.bad.at(now, outcomeHalf)
	h.mu.Unlock()
	if mostly {
		return nil
	}
	return h.reason()
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
