package schematest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ommer/ommer/schema"
)

// ledger records every question of a test and what came of it. Any goroutine may
// ask.
type ledger struct {
	mu    sync.Mutex
	asked []*entry
}

// entry is one question. It is the Receiver of its answer.
type entry struct {
	question schema.Question
	answers  atomic.Int32
	done     chan struct{} // closed by the first answer, which the fields below hold
	answer   schema.Answer
	copied   []byte // the result as it was on arrival
}

// ask puts a question to r.
func (l *ledger) ask(r schema.Resolver, q schema.Question, deadline time.Time) *entry {
	e := &entry{question: q, done: make(chan struct{})}
	l.mu.Lock()
	l.asked = append(l.asked, e)
	l.mu.Unlock()
	r.Resolve(q, deadline, e)
	return e
}

// Answered notes an answer.
func (e *entry) Answered(a schema.Answer) {
	if e.answers.Add(1) > 1 {
		return
	}
	e.answer, e.copied = a, slices.Concat(a.Result, a.Packed.Deflate)
	close(e.done)
}

// entries returns what was asked so far, in order.
func (l *ledger) entries() []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asked)
}

// check looks at every answer when the Resolver has ended.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	unanswered, repeated, changed := 0, 0, 0
	for _, e := range l.entries() {
		switch n := e.answers.Load(); {
		case n == 0:
			unanswered++
			continue
		case n > 1:
			repeated++
		}
		<-e.done
		if !bytes.Equal(slices.Concat(e.answer.Result, e.answer.Packed.Deflate), e.copied) {
			changed++
		}
	}
	if unanswered+repeated+changed > 0 {
		t.Errorf("of %d questions, %d were never answered, %d more than once; %d results changed after they were delivered",
			len(l.asked), unanswered, repeated, changed)
	}
}

// wait returns the answer to e, and false when there was none by the given time
// or it is not well-formed.
func (e *entry) wait(t *testing.T, by time.Time) (schema.Answer, bool) {
	t.Helper()
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case <-e.done:
	case <-timer.C:
		// Both may have been ready, which counts as answered.
		select {
		case <-e.done:
		default:
			t.Errorf("%v: no answer in time", e.question)
			return schema.Answer{}, false
		}
	}
	a := e.answer
	switch {
	case !a.Packed.IsZero() && (a.Err != nil || !e.question.Packed):
		t.Errorf("%v: packed, but it is an error or nobody asked for that", e.question)
	case a.Err == nil && !json.Valid(jsonOf(a)):
		t.Errorf("%v: the result %q is no JSON", e.question, jsonOf(a))
	case a.Err != nil && a.Err.Code == schema.OK:
		t.Errorf("%v: the error has no code: %s", e.question, show(a))
	case a.Err != nil && a.Result != nil:
		t.Errorf("%v: a result beside an error: %s", e.question, show(a))
	default:
		return a, true
	}
	return a, false
}

// wantResult waits for e and wants its answer to be the given JSON.
func wantResult(t *testing.T, e *entry, want string) {
	t.Helper()
	if a, ok := e.wait(t, time.Now().Add(patience)); ok && (a.Err != nil || string(jsonOf(a)) != want) {
		t.Errorf("%v: got %s, want %s", e.question, show(a), want)
	}
}

// wantAny waits for e until the given time and wants the given JSON or one of the
// given failures. It says whether it was the result.
func wantAny(t *testing.T, e *entry, by time.Time, want string, failures ...schema.Code) bool {
	t.Helper()
	a, ok := e.wait(t, by)
	if !ok {
		return false
	}
	if a.Err == nil && string(jsonOf(a)) == want {
		return true
	}
	if a.Err == nil || !slices.Contains(failures, a.Err.Code) {
		t.Errorf("%v: got %s, want %s or one of %v", e.question, show(a), want, failures)
	}
	return false
}

// show writes an answer for a failure's message.
func show(a schema.Answer) string {
	if a.Err != nil {
		return fmt.Sprintf("error %q", a.Err.Error())
	}
	return fmt.Sprintf("%.200s", jsonOf(a))
}

// jsonOf is the result of an answer, or what is wrong with it, which is no JSON.
func jsonOf(a schema.Answer) []byte {
	b, err := Result(a)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}
