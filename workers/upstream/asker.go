package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/schema"
)

// lookup is a question for a block on its way to one node.
type lookup struct {
	ctx context.Context // of who asks
	sel schema.Selector
	// patient says that no other node is left, so that this one may take all of the
	// time that there is.
	patient bool
	told    time.Time
	to      chan<- outcome // has room
	node    *node
}

// mayWait is how long the lookup may wait for what the node's terms allow: where another
// node can be asked, not longer than for a slow answer.
func (l *lookup) mayWait() time.Duration {
	if l.patient {
		return time.Second
	}
	return hedgeFloor
}

// outcome is what a node said to a lookup.
type outcome struct {
	node  *node
	block Block
	found bool
	err   error
}

// Fail answers a lookup whose actor is no more.
func (l *lookup) Fail(err error) {
	l.node.waiting.Add(-1)
	l.to <- outcome{node: l.node, err: fmt.Errorf("%w: %w", ErrFailed, err)}
}

// mail is what an asker receives: a *lookup, or a nudge to look at what waits.
type mail interface{ Fail(err error) }

// nudge says that a round trip has ended, or that a pause is over.
type nudge struct{}

// Fail does nothing: nobody waits for a nudge.
func (nudge) Fail(error) {}

// asker is the actor of a node. It gathers lookups into round trips: one that comes while
// nothing is under way leaves at once; others wait until there are as many as fit, or
// for Config.Gather, and in any case until the node may be asked for more.
type asker struct {
	node  *node
	queue []*lookup // waits
	timer *time.Timer
	armed bool
}

// reservedMail is room for the nudges of a timer, on top of one for each round trip.
const reservedMail = 4

// spawn starts the actor of a node.
func (n *node) spawn(s *actor.System) (err error) {
	n.asker, err = actor.Spawn(s, actor.Options{
		Name: n.name, Mailbox: n.cfg.Waiting, Reserved: n.terms.inFlight + reservedMail,
	}, func(self *actor.Ref[mail]) (actor.Actor[mail], error) {
		a := &asker{node: n}
		// A nudge that comes when the actor has stopped has nobody to move.
		a.timer = time.AfterFunc(time.Hour, func() { _ = self.TellReserved(nudge{}) })
		a.timer.Stop()
		return a, nil
	})
	return err
}

// Receive handles one message.
func (a *asker) Receive(m mail) {
	switch m := m.(type) {
	case *lookup:
		a.queue = append(a.queue, m)
	case nudge:
		a.armed = false
	}
	a.depart(time.Now())
}

// depart sends off what may leave now.
func (a *asker) depart(now time.Time) {
	n := a.node
	for len(a.queue) > 0 {
		if left := n.shut.left(now); left > 0 {
			a.turnAway(fmt.Errorf("%w: it asked to be left alone for %v", ErrOverloaded, left.Round(time.Millisecond)))
			return
		}
		flights := int(n.flights.Load())
		if flights >= n.terms.inFlight {
			return // the end of one of them is a nudge
		}
		size := min(int(n.batch.Load()), len(a.queue))
		if wait := n.cfg.Gather - now.Sub(a.queue[0].told); flights > 0 && size < int(n.batch.Load()) && wait > 0 {
			a.nudgeIn(wait)
			return
		}
		if n.limiter != nil {
			if free := int(n.limiter.TokensAt(now)) / callsEach; free < size {
				size = max(free, 1)
			}
			if r := n.limiter.ReserveN(now, size*callsEach); r.DelayFrom(now) > 0 {
				wait := r.DelayFrom(now)
				r.CancelAt(now)
				a.nudgeIn(wait)
				return
			}
		}
		if batch := a.take(size, now); len(batch) > 0 {
			n.depart(batch, now)
		}
	}
}

// take takes lookups off the queue that fit into one round trip: by number or hash, or a
// single one by tag, which may take two. Those that nobody waits for are left out.
func (a *asker) take(size int, now time.Time) (batch []*lookup) {
	taken := 0
	for _, l := range a.queue {
		tag := l.sel.Kind() == schema.ByTag
		if len(batch) == size || tag && len(batch) > 0 {
			break
		}
		taken++
		a.node.waiting.Add(-1)
		a.node.gate.Took(now, l.told)
		if l.ctx.Err() != nil {
			l.to <- outcome{node: l.node, err: errGivenUp}
			continue
		}
		batch = append(batch, l)
		if tag {
			break
		}
	}
	clear(a.queue[:taken])
	if a.queue = a.queue[taken:]; len(a.queue) == 0 {
		a.queue = nil
	}
	return batch
}

var errGivenUp = fmt.Errorf("%w: its turn did not come in time", ErrOverloaded)

// turnAway answers all that wait, so that other nodes are asked.
func (a *asker) turnAway(err error) {
	for _, l := range a.queue {
		a.node.waiting.Add(-1)
		l.to <- outcome{node: l.node, err: err}
	}
	a.queue = nil
}

func (a *asker) nudgeIn(d time.Duration) {
	if !a.armed {
		a.armed = true
		a.timer.Reset(d)
	}
}

// Crashed fails those who wait.
func (a *asker) Crashed(err error) {
	a.timer.Stop()
	a.turnAway(fmt.Errorf("%w: %w", ErrFailed, err))
}

// Stopped sends away those who wait.
func (a *asker) Stopped() { a.Crashed(errors.New("closed")) }
