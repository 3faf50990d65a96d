package workers

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ommer/ommer/schema"
)

const (
	// warmAsks is how many blocks Warm asks for at a time: half of what a node is asked
	// at a time, so that callers have the other half.
	warmAsks = 32
	// warmRounds is how often Warm asks for a block for which there is no answer.
	warmRounds = 3
	// warmPause is how long Warm waits when the source or a shard cannot take more.
	warmPause = time.Second
	// warmMargin is the part of the room, one in so many bytes, that Warm leaves: those that
	// are on their way then must not push out the first, which are worth most.
	warmMargin = 16
)

// Warm asks for blocks in their order, as a caller would, so that they are in the cache
// when callers ask. It goes slowly, and rests while the source is not ready or callers
// want more than there is. It returns when all have been answered, or as many as the
// cache has room for, or when ctx ends: then with those that it does not have yet.
func (p *Pool) Warm(ctx context.Context, blocks []schema.Selector) (rest []schema.Selector) {
	w := &warming{pool: p, todo: blocks, onWay: map[schema.Selector]bool{}, answers: make(chan warmed, warmAsks)}
	for range warmRounds {
		if !w.round(ctx) {
			rest = slices.AppendSeq(rest, maps.Keys(w.onWay))
			return append(append(rest, w.todo...), w.again...)
		}
		w.todo, w.again = w.again, nil
	}
	return nil
}

// warming is the state of Warm.
type warming struct {
	pool    *Pool
	todo    []schema.Selector
	onWay   map[schema.Selector]bool
	again   []schema.Selector // in the next round
	answers chan warmed       // with room for all that are on their way
}

// warmed is an answer.
type warmed struct {
	block schema.Selector
	again bool // there was none, and there may be one later
}

// round asks for what is to do. It returns false when ctx has ended before all was answered.
func (w *warming) round(ctx context.Context) bool {
	for len(w.todo) > 0 || len(w.onWay) > 0 {
		rest := false
		if len(w.todo) > 0 && len(w.onWay) < warmAsks {
			if rest = w.pool.Ready() != nil || !w.ask(w.todo[0]); !rest {
				w.todo = w.todo[1:]
			}
		} else {
			select {
			case a := <-w.answers:
				rest = w.take(a)
			case <-ctx.Done():
			}
		}
		if rest {
			pause(ctx)
			for len(w.answers) > 0 { // what has failed as well meanwhile needs no rest of its own
				w.take(<-w.answers)
			}
		}
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// pause waits, or for the end of ctx.
func pause(ctx context.Context) {
	timer := time.NewTimer(warmPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// take notes an answer.
func (w *warming) take(a warmed) (again bool) {
	delete(w.onWay, a.block)
	if a.again {
		w.again = append(w.again, a.block)
	}
	return a.again
}

// ask asks for a block unless its shard is full, or it is on its way. It returns false
// when there is no room in the mailbox.
func (w *warming) ask(b schema.Selector) bool {
	p := w.pool
	s := p.slot(b)
	if s.full.Load() || w.onWay[b] {
		return true
	}
	now := time.Now()
	if s.gate.Closed(now) {
		return false
	}
	a := p.asks.Get().(*ask)
	a.question, a.told, a.deadline, a.count = schema.Question{Block: b}, now, now.Add(p.cfg.Timeout), &s.warmed
	a.to = schema.ReceiverFunc(func(answer schema.Answer) { w.answers <- warmed{b, comesLater(answer.Err)} })
	if s.shard.Tell(a) != nil {
		p.release(a)
		return false
	}
	w.onWay[b] = true
	return true
}

// comesLater says whether there may be an answer later where there is none now.
func comesLater(err *schema.Error) bool {
	if err == nil {
		return false
	}
	switch err.Code {
	case schema.Overloaded, schema.Timeout, schema.Unavailable, schema.Draining:
		return true
	default:
		return false
	}
}
