package workers

import (
	"time"

	"github.com/ommer/ommer/schema"
)

// message is what a shard receives: an *ask, a *fetched, a *known, a wakeUp, a *listing or a
// *farewell. All of them are actor.Failers.
type message interface{ Fail(err error) }

// ask is a question on its way. It comes from Pool.asks and goes back there when it
// was answered and nobody holds it any more.
type ask struct {
	question schema.Question
	told     time.Time // when it came into the mailbox
	deadline time.Time
	to       schema.Receiver // nil once answered
	count    *counters
}

// fail answers with a failure.
func (a *ask) fail(e *schema.Error) {
	a.count.failed(e.Code)
	a.answer(schema.Answer{Err: e})
}

// answer marks the ask before it calls out, so that a Receiver that panics is not
// answered again by Fail.
func (a *ask) answer(answer schema.Answer) {
	to := a.to
	a.to = nil
	to.Answered(answer)
}

// Fail answers unless that was done.
func (a *ask) Fail(err error) {
	if a.to != nil {
		a.fail(failure(err))
	}
}

// known is a block under the name that it was not asked for by.
type known struct {
	selector schema.Selector
	entry    entry
}

// Fail does nothing: it will be asked for when it is needed.
func (*known) Fail(error) {}

// wakeUp tells a shard that a deadline of those who wait has passed.
type wakeUp struct{}

// Fail does nothing: nobody waits for a wake-up.
func (wakeUp) Fail(error) {}

// farewell asks a shard to say when nobody waits there any more, and to let nobody
// wait from then on.
type farewell struct {
	done chan struct{} // closed by the shard
}

// Fail says that there is nothing left to wait for.
func (f *farewell) Fail(error) { f.close() }

func (f *farewell) close() {
	select {
	case <-f.done:
	default:
		close(f.done)
	}
}
