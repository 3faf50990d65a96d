package keys

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/schema"
)

// Entry is a key as an edge knows it. It is shared by everything that goes on under
// the key and lives as long as any of that does. What is asked of it is answered by
// the settings of this moment, from memory and without a lock.
type Entry struct {
	id, name string
	revoked  atomic.Bool
	rules    atomic.Pointer[rules] // nil: no restriction
	budget   budget

	// Lookups is how many are asked under the key at this moment. Whoever asks counts.
	Lookups atomic.Int64
	conns   atomic.Int64

	// The directory's alone, under its mutex.
	revision uint64
	seen     uint64 // the load in which the bucket last had it
}

// static is the revision of keys that are in no bucket. Nothing is newer.
const static = 1<<64 - 1

// ID is the public name of the key, fit for logs and metrics.
func (e *Entry) ID() string { return e.id }

// Name is what the operator called the key when this process first saw it.
func (e *Entry) Name() string { return e.name }

// Revoked says that the key is no longer good. It never turns back: a key that
// becomes good again gets another Entry.
func (e *Entry) Revoked() bool { return e.revoked.Load() }

// AllowsNetwork says whether the key is good on a network.
func (e *Entry) AllowsNetwork(network string) bool {
	r := e.rules.Load()
	return r == nil || len(r.settings.Networks) == 0 || slices.Contains(r.settings.Networks, network)
}

// AllowsOrigin says whether the key may be used from an origin, which is nil or
// empty where the request has none. Allowed is what to name in
// Access-Control-Allow-Origin: the origin, or "*" when any will do. It keeps
// nothing of got.
func (e *Entry) AllowsOrigin(got []byte) (allowed string, ok bool) {
	r := e.rules.Load()
	if r == nil || len(r.origins) == 0 {
		return anyOrigin, true
	}
	for i := range r.origins {
		if allowed, ok = r.origins[i].match(got); ok {
			return allowed, true
		}
	}
	return "", false
}

// AllowsMethod says whether a method may be called.
func (e *Entry) AllowsMethod(m schema.Method) bool {
	r := e.rules.Load()
	return r == nil || len(r.settings.Methods) == 0 || r.methods&(1<<m) != 0
}

// Overrun says how a key is over its rate.
type Overrun struct {
	Rate int           // that it has, in calls per second
	Wait time.Duration // until a call is let in again
}

// Admit lets a message in and charges one call for it, when the key has a call left.
// Otherwise it says what the key is over and charges nothing.
func (e *Entry) Admit() (over Overrun, ok bool) {
	r := e.rules.Load()
	if r == nil || r.pace.interval == 0 {
		return Overrun{}, true
	}
	if wait := e.budget.take(int64(time.Since(epoch)), r.pace); wait > 0 {
		return Overrun{r.settings.Rate, wait}, false
	}
	return Overrun{}, true
}

// Charge charges what a message that was let in holds beyond its first call. They
// may be more calls than the key has left: a batch of any size is answered, and
// what comes after it waits until it is paid for.
func (e *Entry) Charge(calls int) {
	if r := e.rules.Load(); r != nil && calls > 0 {
		e.budget.charge(calls, r.pace)
	}
}

// Open counts a WebSocket in, when the key may have one more open: as many as its
// settings say, or else usual, where 0 is any number. Each that was let in is counted
// out with Close. Settings that allow fewer than are open end none of them.
func (e *Entry) Open(usual int) bool {
	limit := int64(usual)
	if r := e.rules.Load(); r != nil && r.settings.MaxConns > 0 {
		limit = int64(r.settings.MaxConns)
	}
	for {
		n := e.conns.Load()
		if limit > 0 && n >= limit {
			return false
		}
		if e.conns.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Close counts a WebSocket out.
func (e *Entry) Close() { e.conns.Add(-1) }

// Conns is how many WebSockets are open.
func (e *Entry) Conns() int { return int(e.conns.Load()) }

// apply makes the settings those of the entry, and says whether other origins or
// networks are let in by them. It is the directory's.
func (e *Entry) apply(s Settings) (otherAccess bool) {
	now := newRules(s)
	before := e.rules.Swap(now)
	rate, burst := now.rate()
	if r, b := before.rate(); r != rate || b != burst {
		e.budget.refill() // debts at one rate mean nothing at another
	}
	return !sameAccess(before, now)
}
