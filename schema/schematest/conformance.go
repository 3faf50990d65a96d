package schematest

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/ommer/ommer/schema"
)

// Subject is a Resolver that is running, with what the suite must know about it.
type Subject struct {
	// Resolver is ready: what it is asked now is answered.
	Resolver schema.Resolver
	// Known are questions, none of them Packed, and the JSON of their results, at least one. What is
	// not among them, as far as the suite asks for it, gives null: a hash of
	// nothing but 0xfe, a height of 2^62, and an index of 2^64-1 in a known block.
	Known map[schema.Question]string
	// Stall makes whatever the Resolver asks keep its answers back until release
	// is called. The suite always calls release. Nil leaves out the tests of what
	// happens meanwhile.
	Stall func() (release func())
	// Stop ends the Resolver and returns when it has answered everyone. Nil leaves
	// out the test of it; start's clean-up must stand its having been called.
	Stop func()
}

// Bounds on waiting. They only decide how long a failure takes.
const (
	patience = 15 * time.Second // for an answer that nothing keeps back
	prompt   = 3 * time.Second  // for one whose deadline has passed
)

// Conformance runs the suite. Start makes a new Subject for each of its tests and
// registers with t.Cleanup how to end it; after that every question must have been
// answered, once.
func Conformance(t *testing.T, start func(t *testing.T) Subject) {
	tests := []struct {
		name string
		run  func(t *testing.T, s Subject, l *ledger)
	}{
		{"known questions give their results", testKnown},
		{"questions that may be packed get the same results", testPacked},
		{"what does not exist gives null", testNull},
		{"a passed deadline is answered promptly", testPassedDeadline},
		{"many at once are answered once each", testConcurrent},
		{"Resolve never blocks", testNeverBlocks},
		{"what is not answered in time fails", testDeadline},
		{"stopping answers everyone", testStop},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var l ledger
			// Clean-ups run last first, so this looks when the Subject has ended.
			t.Cleanup(func() { l.check(t) })
			s := start(t)
			if len(s.Known) == 0 {
				t.Fatal("the Subject has no known question")
			}
			tt.run(t, s, &l)
		})
	}
}

func testKnown(t *testing.T, s Subject, l *ledger) {
	// The second time a cache may answer, the third is without a deadline.
	for _, deadline := range []time.Time{time.Now().Add(patience), time.Now().Add(patience), {}} {
		for q, want := range s.Known {
			wantResult(t, l.ask(s.Resolver, q, deadline), want)
		}
	}
}

func testPacked(t *testing.T, s Subject, l *ledger) {
	for range 2 {
		for q, want := range s.Known {
			q.Packed = true
			wantResult(t, l.ask(s.Resolver, q, time.Now().Add(patience)), want)
		}
		for _, q := range unknown(s) {
			q.Packed = true
			wantResult(t, l.ask(s.Resolver, q, time.Now().Add(patience)), string(schema.Null))
		}
	}
}

func testNull(t *testing.T, s Subject, l *ledger) {
	for _, q := range unknown(s) {
		wantResult(t, l.ask(s.Resolver, q, time.Now().Add(patience)), string(schema.Null))
	}
}

func testPassedDeadline(t *testing.T, s Subject, l *ledger) {
	for q, want := range s.Known {
		for _, deadline := range []time.Time{time.Now().Add(-time.Second), time.Unix(1, 0), time.Now()} {
			wantAny(t, l.ask(s.Resolver, q, deadline), time.Now().Add(prompt), want, schema.Timeout)
		}
	}
}

func testConcurrent(t *testing.T, s Subject, l *ledger) {
	const askers, rounds = 16, 250
	questions := map[schema.Question]string{}
	for q, want := range s.Known {
		questions[q] = want
	}
	for _, q := range unknown(s) {
		questions[q] = string(schema.Null)
	}
	deadline := time.Now().Add(patience)
	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() {
			for asked := 0; asked < rounds; {
				for q := range questions {
					l.ask(s.Resolver, q, deadline)
					asked++
				}
			}
		})
	}
	wg.Wait()
	results := 0
	for _, e := range l.entries() {
		// A flood may be shed, but not answered wrongly.
		if wantAny(t, e, deadline.Add(prompt), questions[e.question], schema.Overloaded, schema.Timeout) {
			results++
		}
	}
	if results == 0 {
		t.Error("every question was shed")
	}
}

func testNeverBlocks(t *testing.T, s Subject, l *ledger) {
	if s.Stall == nil {
		t.Skip("the Subject cannot be stalled")
	}
	const questions = 2000
	release := sync.OnceFunc(s.Stall())
	defer release()
	deadline := time.Now().Add(patience)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for n := 0; n < questions; {
			for q := range s.Known {
				l.ask(s.Resolver, q, deadline)
				n++
			}
		}
	}()
	select {
	case <-asked:
	case <-time.After(patience / 2):
		t.Error("Resolve waits for answers")
	}
	release()
	<-asked
	for _, e := range l.entries() {
		wantAny(t, e, deadline.Add(prompt), s.Known[e.question], schema.Overloaded, schema.Timeout)
	}
}

func testDeadline(t *testing.T, s Subject, l *ledger) {
	if s.Stall == nil {
		t.Skip("the Subject cannot be stalled")
	}
	release := s.Stall()
	defer release()
	deadline := time.Now().Add(100 * time.Millisecond)
	for q := range s.Known {
		l.ask(s.Resolver, q, deadline)
	}
	for _, e := range l.entries() {
		a, ok := e.wait(t, deadline.Add(prompt))
		if ok && (a.Err == nil || a.Err.Code != schema.Timeout) {
			t.Errorf("%v: got %s, want a time-out", e.question, show(a))
		}
	}
}

func testStop(t *testing.T, s Subject, l *ledger) {
	if s.Stall == nil || s.Stop == nil {
		t.Skip("the Subject cannot be stalled and stopped")
	}
	release := s.Stall()
	defer release()
	deadline := time.Now().Add(time.Second)
	askAll := func() {
		for q := range s.Known {
			l.ask(s.Resolver, q, deadline)
		}
	}
	askAll()
	s.Stop()
	waiting := l.entries()
	for _, e := range waiting {
		if _, ok := e.wait(t, time.Now()); !ok {
			return
		}
	}
	askAll()
	for _, e := range l.entries()[len(waiting):] {
		e.wait(t, time.Now().Add(prompt))
	}
}

// unknown are questions that nothing answers.
func unknown(s Subject) []schema.Question {
	var nothing schema.Hash
	for i := range nothing {
		nothing[i] = 0xfe
	}
	questions := []schema.Question{
		{Block: schema.BlockHash(nothing)},
		{Block: schema.Number(1 << 62)},
	}
	for q := range s.Known {
		return append(questions, schema.Question{Block: q.Block, Index: math.MaxUint64})
	}
	return questions
}
