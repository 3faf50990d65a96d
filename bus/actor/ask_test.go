package actor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// query is a message that is to be answered.
type query struct {
	Reply[int]
	n int
}

func newQuery(n int) func(Reply[int]) query {
	return func(r Reply[int]) query { return query{r, n} }
}

func TestAsk(t *testing.T) {
	reason := errors.New("reason")
	for _, tt := range []struct {
		name    string
		receive func(q query)
		before  func(r *Ref[query], cancel context.CancelCauseFunc) // the asking
		want    int
		err     error
	}{
		{name: "answer", receive: func(q query) { q.Answer(q.n + 1) }, want: 8},
		{name: "answer later", receive: func(q query) { go q.Answer(q.n + 1) }, want: 8},
		{name: "two answers", receive: func(q query) { q.Answer(1); q.Answer(2); q.Fail(reason) }, want: 1},
		{name: "failure", receive: func(q query) { q.Fail(reason); q.Answer(1) }, err: reason},
		{name: "failure without a reason", receive: func(q query) { q.Fail(nil) }, err: errNoReason},
		{name: "panic", receive: func(query) { panic(reason) }, err: ErrPanic},
		{name: "panic after the answer", receive: func(q query) { q.Answer(1); panic(reason) }, want: 1},
		{name: "stopped", before: func(r *Ref[query], _ context.CancelCauseFunc) { r.Stop() }, err: ErrStopped},
		{name: "context over", before: func(_ *Ref[query], cancel context.CancelCauseFunc) { cancel(reason) }, err: reason},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSystem(t, Config{})
			r := spawn(t, s, Options{Name: "a"}, receive[query](tt.receive))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tt.before != nil {
				tt.before(r, cancel)
			}
			got, err := Ask(ctx, r, newQuery(7))
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("Ask = %d, %v, want %d, %v", got, err, tt.want, tt.err)
			}
			// AskFunc has the same outcomes, but for the context's.
			if errors.Is(tt.err, reason) && tt.before != nil {
				return
			}
			done := make(chan struct{})
			AskFunc(r, time.Hour, newQuery(7), func(got int, err error) {
				if got != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("AskFunc: %d, %v, want %d, %v", got, err, tt.want, tt.err)
				}
				close(done) // a second call would panic
			})
			<-done
		})
	}
}

// TestAskFull: a question that finds no place is answered at once.
func TestAskFull(t *testing.T) {
	s := newSystem(t, Config{})
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r := spawn(t, s, Options{Name: "a", Mailbox: 1}, receive[query](func(q query) {
		once.Do(func() { close(entered); <-leave })
		q.Answer(q.n)
	}))
	tell(t, r, query{})
	<-entered
	tell(t, r, query{}) // nobody waits for these two
	if _, err := Ask(t.Context(), r, newQuery(1)); !errors.Is(err, ErrFull) {
		t.Errorf("Ask: %v, want ErrFull", err)
	}
	calls := 0
	AskFunc(r, time.Hour, newQuery(1), func(_ int, err error) {
		if calls++; !errors.Is(err, ErrFull) {
			t.Errorf("AskFunc: %v, want ErrFull", err)
		}
	})
	if calls != 1 {
		t.Errorf("done was called %d times before AskFunc returned, want once", calls)
	}
	close(leave)
}

// TestAskLate: what comes after the deadline reaches nobody, and the actor can
// see that nobody waits.
func TestAskLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, Config{})
		kept := make(chan query, 2)
		r := spawn(t, s, Options{Name: "a"}, receive[query](func(q query) { kept <- q }))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := Ask(ctx, r, newQuery(1)); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("Ask: %v after %v", err, time.Since(began))
		}
		calls := 0
		AskFunc(r, time.Second, newQuery(2), func(_ int, err error) {
			if calls++; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("AskFunc: %v, want DeadlineExceeded", err)
			}
		})
		late, open := <-kept, <-kept
		if late.Waiting() || !open.Waiting() {
			t.Errorf("Waiting: late %v, open %v", late.Waiting(), open.Waiting())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		late.Answer(1)
		open.Answer(2)
		if calls != 1 || open.Waiting() {
			t.Errorf("%d outcomes, want 1", calls)
		}
	})
}

// TestAskRace: an answer, a failure and a deadline in the same moment make one
// outcome.
func TestAskRace(t *testing.T) {
	s := newSystem(t, Config{})
	r := spawn(t, s, Options{Name: "a"}, receive[query](func(q query) {
		go q.Answer(1)
		go q.Fail(ErrStopped)
	}))
	for range 500 {
		var outcomes atomic.Int32
		first := make(chan struct{}, 3)
		AskFunc(r, time.Microsecond, newQuery(0), func(int, error) {
			outcomes.Add(1)
			first <- struct{}{}
		})
		<-first
		if n := outcomes.Load(); n != 1 {
			t.Fatalf("%d outcomes", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		if n, err := Ask(ctx, r, newQuery(0)); (n == 1) == (err != nil) {
			t.Fatalf("Ask = %d, %v", n, err)
		}
		cancel()
	}
}
