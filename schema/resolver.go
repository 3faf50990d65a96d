package schema

import "time"

// Resolver answers questions. The workers are one, the bus client that asks them
// is another, and so are the doubles of tests; all of them pass the suite of
// package schematest.
type Resolver interface {
	// Resolve takes a question and returns at once; it never blocks and may be
	// called from any goroutine. The answer is delivered by exactly one call of
	// to.Answered, from any goroutine, possibly before Resolve returns, and no
	// later than shortly after the deadline: what cannot be answered in time
	// is answered with Timeout. A zero deadline means the resolver's own default.
	Resolve(q Question, deadline time.Time, to Receiver)
}

// Receiver takes the answer to one question.
type Receiver interface {
	// Answered is called exactly once per question. It must not block, and must
	// not call back into the Resolver from the same stack unless the answer is
	// Unhurried.
	Answered(a Answer)
}

// ReceiverFunc is a function as a Receiver.
type ReceiverFunc func(a Answer)

// Answered calls f.
func (f ReceiverFunc) Answered(a Answer) { f(a) }
