package schematest

import (
	"slices"
	"sync"
	"time"

	"github.com/ommer/ommer/schema"
)

// defaultTime is how long a question without a deadline may be held.
const defaultTime = 10 * time.Second

// Fixed is a Resolver over a table. It answers before Resolve returns, unless it
// was told to hold its answers back: then each question waits to be released, or
// for its deadline. Questions that the table has not give null. A large result is
// packed if the question allows it, which is no part of its key in the table.
//
// All methods may be called from any goroutine.
type Fixed struct {
	mu      sync.Mutex
	answers map[schema.Question]schema.Answer
	asked   int
	holding bool
	stopped bool
	held    []*heldQuestion
	timers  sync.WaitGroup // the deadlines of what is held
}

// heldQuestion waits for its release or its deadline, whichever takes it out of
// Fixed.held first.
type heldQuestion struct {
	question schema.Question // as in the table
	packed   bool
	to       schema.Receiver
	deadline *time.Timer
}

// NewFixed returns a Resolver that gives the results, each the JSON that answers
// its question.
func NewFixed(results map[schema.Question]string) *Fixed {
	f := &Fixed{answers: make(map[schema.Question]schema.Answer, len(results))}
	for q, result := range results {
		f.answers[q] = schema.Answer{Result: []byte(result)}
	}
	return f
}

// Set gives q another answer, which may be a failure.
func (f *Fixed) Set(q schema.Question, a schema.Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[q] = a
}

// Resolve answers q, or holds it.
func (f *Fixed) Resolve(q schema.Question, deadline time.Time, to schema.Receiver) {
	a, now := f.resolve(q, deadline, to)
	if now {
		to.Answered(a)
	}
}

func (f *Fixed) resolve(q schema.Question, deadline time.Time, to schema.Receiver) (a schema.Answer, now bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	packed := q.Packed
	q.Packed = false
	left := defaultTime
	if !deadline.IsZero() {
		left = time.Until(deadline)
	}
	switch {
	case f.stopped:
		return failure(schema.Draining), true
	case !f.holding:
		return f.answer(q, packed), true
	case left <= 0:
		return failure(schema.Timeout), true
	}
	h := &heldQuestion{question: q, packed: packed, to: to}
	f.held = append(f.held, h)
	f.timers.Add(1)
	h.deadline = time.AfterFunc(left, func() {
		defer f.timers.Done()
		if f.takeOne(func(other *heldQuestion) bool { return other == h }) != nil {
			to.Answered(failure(schema.Timeout))
		}
	})
	return schema.Answer{}, false
}

// Hold makes questions wait from now on.
func (f *Fixed) Hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holding = true
}

// Release ends Hold and answers what waits, in the order in which it was asked.
func (f *Fixed) Release() {
	f.mu.Lock()
	f.holding = false
	held := f.held
	f.held = nil
	f.mu.Unlock()
	for _, h := range held {
		f.release(h)
	}
}

// ReleaseOne answers the oldest question that waits and equals q. It says whether
// there was one.
func (f *Fixed) ReleaseOne(q schema.Question) bool {
	h := f.takeOne(func(h *heldQuestion) bool { return h.question == q })
	if h == nil {
		return false
	}
	f.release(h)
	return true
}

// Waiting returns the questions that wait, the oldest first.
func (f *Fixed) Waiting() []schema.Question {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting := make([]schema.Question, len(f.held))
	for i, h := range f.held {
		waiting[i] = h.question
	}
	return waiting
}

// Asked returns how many questions there have been.
func (f *Fixed) Asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// Stop answers what waits, and whatever is asked later, with Draining. When it
// returns no goroutine of f is left. It may be called again.
func (f *Fixed) Stop() {
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	f.Release()
	f.timers.Wait()
}

// takeOne removes the first held question that matches, so that nobody else
// answers it. It returns nil when there is none.
func (f *Fixed) takeOne(match func(*heldQuestion) bool) *heldQuestion {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.held, match)
	if i < 0 {
		return nil
	}
	h := f.held[i]
	f.held = slices.Delete(f.held, i, i+1)
	return h
}

// release answers a question that was taken.
func (f *Fixed) release(h *heldQuestion) {
	if h.deadline.Stop() {
		f.timers.Done()
	}
	f.mu.Lock()
	a := f.answer(h.question, h.packed)
	f.mu.Unlock()
	h.to.Answered(a)
}

// answer looks a question up. The caller holds mu.
func (f *Fixed) answer(q schema.Question, packed bool) schema.Answer {
	if f.stopped {
		return failure(schema.Draining)
	}
	a, ok := f.answers[q]
	if !ok {
		return schema.Answer{Result: schema.Null}
	}
	if packed {
		if p := schema.Pack(a.Result); !p.IsZero() {
			return schema.Answer{Packed: p}
		}
	}
	return a
}

func failure(c schema.Code) schema.Answer { return schema.Answer{Err: &schema.Error{Code: c}} }
