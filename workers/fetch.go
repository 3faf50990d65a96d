package workers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// shortestFetch is the least time that the source is given. A caller in a greater
// hurry is told that time is up while the fetch goes on, for the next one; cutting it
// off would cost a connection.
const shortestFetch = time.Second

// fetch is a block that the source is being asked for, in the state of a shard.
type fetch struct {
	waiting []*ask
}

// fetched is what came of it, as told to the shard.
type fetched struct {
	selector schema.Selector
	entry    entry
	err      error
	cutOff   bool // the time ran out
	slot     *slot
	counted  bool // among slot.fetches
}

// Fail gives the place back. Those who wait are known to the shard and fail there.
func (r *fetched) Fail(error) { r.settle() }

// settle gives the fetch's place back, once.
func (r *fetched) settle() {
	if r.counted {
		r.counted = false
		r.slot.fetches.Add(-1)
	}
}

// fetch asks the source for a block on a goroutine of its own and tells the shard
// what came of it. It returns false when too much is being asked already.
//
// The count is that of the slot, which outlives the shard: as long as it is within
// its bound, an answer finds a reserved place in the mailbox.
func (p *Pool) fetch(s *slot, selector schema.Selector, deadline time.Time) bool {
	if s.fetches.Add(1) > int32(p.cfg.perShard(p.cfg.MaxFetches)) {
		s.fetches.Add(-1)
		return false
	}
	if soonest := time.Now().Add(shortestFetch); deadline.Before(soonest) {
		deadline = soonest
	}
	ctx, cancel := context.WithDeadline(p.ctx, deadline)
	p.fetches.Go(func() {
		defer cancel()
		r := &fetched{selector: selector, slot: s, counted: true}
		r.entry, r.err = p.askSource(ctx, selector)
		r.cutOff = errors.Is(ctx.Err(), context.DeadlineExceeded)
		if err := s.shard.TellReserved(r); err != nil {
			r.settle() // the shard has stopped, and answered everyone
		}
	})
	return true
}

var errPanic = errors.New("workers: panic while fetching")

// askSource asks the source. A panic there is contained: it must not end the process for
// the sake of one block.
func (p *Pool) askSource(ctx context.Context, selector schema.Selector) (e entry, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.cfg.Logger.Error("panic while fetching a block", "block", selector.String(), "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanic, v)
		}
	}()
	asked := time.Now()
	b, found, err := p.cfg.Source.Block(ctx, selector)
	if err != nil {
		return entry{}, err
	}
	if n := len(b.Uncles); n > upstream.MaxUncles {
		return entry{}, fmt.Errorf("%w: %d uncles in a block", upstream.ErrUntrue, n)
	}
	return newEntry(selector, b, found, asked), nil
}
