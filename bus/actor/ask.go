package actor

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Reply is the way back to whoever asked, inside a message. Embedded, it makes
// the message a Failer, so that the asker hears of a panic and of a stop:
//
//	type lookup struct {
//		actor.Reply[string]
//		name string
//	}
//
//	func (d *directory) Receive(m lookup) {
//		m.Answer(d.names[m.name])
//	}
//
// The first outcome counts, whoever it is from: the actor's Answer or Fail, the
// runtime's Fail, or the asker's deadline. Later ones do nothing. A Reply may be
// copied, kept by the actor beyond Receive, and used from any goroutine. The zero
// Reply answers nobody, so that the same message can also just be told.
type Reply[A any] struct {
	q *question[A]
}

// question is what is known of one asking.
type question[A any] struct {
	settled atomic.Bool
	timer   atomic.Pointer[time.Timer] // of AskFunc; Ask has a context instead
	done    func(A, error)
}

// Answer gives the asker a.
func (r Reply[A]) Answer(a A) { r.settle(a, nil) }

// Fail gives the asker an error instead of an answer. A nil error is replaced by
// one that says so, lest it be taken for an answer.
func (r Reply[A]) Fail(err error) {
	var none A
	if err == nil {
		err = errNoReason
	}
	r.settle(none, err)
}

var errNoReason = errors.New("actor: failed without a reason")

// Waiting reports whether the asker still waits. An actor may leave out work that
// nobody waits for.
func (r Reply[A]) Waiting() bool { return r.q != nil && !r.q.settled.Load() }

func (r Reply[A]) settle(a A, err error) {
	if r.q == nil || !r.q.settle() {
		return
	}
	if t := r.q.timer.Load(); t != nil {
		t.Stop()
	}
	r.q.done(a, err)
}

// settle returns true to exactly one caller: the one whose outcome counts.
func (q *question[A]) settle() bool { return q.settled.CompareAndSwap(false, true) }

// Ask tells an actor a message that is to be answered, and waits for the outcome:
// the answer or the error that the actor gave, ErrFull, ErrStopped, an error that
// wraps ErrPanic, or the context's. There is exactly one. message builds the
// message around the way back.
//
// Ask parks the calling goroutine, so it is for those that are not actors, and
// for a context that ends: an actor may forget to answer. Actors use AskFunc.
func Ask[M, A any](ctx context.Context, to *Ref[M], message func(Reply[A]) M) (A, error) {
	type outcome struct {
		a   A
		err error
	}
	var none A
	if err := ctx.Err(); err != nil {
		return none, context.Cause(ctx)
	}
	ch := make(chan outcome, 1)
	q := &question[A]{done: func(a A, err error) { ch <- outcome{a, err} }}
	if err := to.Tell(message(Reply[A]{q})); err != nil {
		return none, err
	}
	select {
	case o := <-ch:
		return o.a, o.err
	case <-ctx.Done():
		if q.settle() {
			return none, context.Cause(ctx)
		}
		o := <-ch // answered in the same moment
		return o.a, o.err
	}
}

// AskFunc is Ask without waiting: done is called exactly once with the outcome,
// which is context.DeadlineExceeded when there is none within the timeout. No
// goroutine is parked meanwhile.
//
// done may be called before AskFunc returns, and from any goroutine, the
// answering actor's among them: it must not block or panic. An actor that asks
// has done tell itself the outcome, with TellReserved.
func AskFunc[M, A any](to *Ref[M], timeout time.Duration, message func(Reply[A]) M, done func(A, error)) {
	q := &question[A]{done: done}
	r := Reply[A]{q}
	m := message(r)
	q.timer.Store(time.AfterFunc(timeout, func() { r.Fail(context.DeadlineExceeded) }))
	if err := to.Tell(m); err != nil {
		r.Fail(err)
	}
}
