package workers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

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
		var also schema.Selector
		r.entry, also, r.err = p.askSource(ctx, selector)
		r.cutOff = errors.Is(ctx.Err(), context.DeadlineExceeded)
		if err := s.shard.TellReserved(r); err != nil {
			r.settle() // the shard has stopped, and answered everyone
		}
		if also.Kind() != 0 {
			e := r.entry
			e.until = time.Time{}
			_ = p.slot(also).shard.Tell(&known{also, e}) // a shard with a full mailbox does without
		}
	})
	return true
}

var errPanic = errors.New("workers: panic while fetching")

// askSource asks the source, and says under which other name the block is known from now
// on, if any. A panic there is contained: it must not end the process for the sake of
// one block.
func (p *Pool) askSource(ctx context.Context, selector schema.Selector) (e entry, also schema.Selector, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.cfg.Logger.Error("panic while fetching a block", "block", selector.String(), "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanic, v)
		}
	}()
	asked := time.Now()
	b, found, err := p.cfg.Source.Block(ctx, selector)
	if err != nil {
		return e, also, err
	}
	if n := len(b.Uncles); n > upstream.MaxUncles {
		return e, also, fmt.Errorf("%w: %d uncles in a block", upstream.ErrUntrue, n)
	}
	if h := b.Header; h != nil && p.merged(h.Number.Uint64()) && h.UncleHash != types.EmptyUncleHash {
		return e, also, fmt.Errorf("%w: block %v is of proof of stake and has uncles", upstream.ErrUntrue, h.Number)
	}
	return newEntry(selector, b, found, asked), p.otherName(selector, b, asked), nil
}

// otherName is the hash of a block that was asked for by number or tag. Of one that was
// asked for by hash it is the number, if it is certain that the block stands there for
// good: other nodes hold blocks too that are not canonical.
func (p *Pool) otherName(s schema.Selector, b upstream.Block, now time.Time) schema.Selector {
	if b.Header == nil {
		return schema.Selector{}
	}
	if s.Kind() != schema.ByHash {
		return schema.BlockHash(schema.Hash(b.Header.Hash()))
	}
	number := schema.Number(b.Header.Number.Uint64())
	if v := p.view(now); v != nil && v.Final(number.Number()) {
		if at := v.At(number); at != nil && at.Hash == s.Hash() {
			return number
		}
	}
	return schema.Selector{}
}
