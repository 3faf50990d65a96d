package upstream

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ommer/ommer/schema"
)

// depart begins a round trip, on a goroutine of its own.
func (n *node) depart(batch []*lookup, now time.Time) {
	if n.flights.Add(1) == 1 {
		n.heard.Store(now.UnixNano())
	}
	n.aboard.Add(int64(len(batch)))
	n.background.Go(func() {
		n.fly(batch, now)
		n.aboard.Add(int64(-len(batch)))
		n.flights.Add(-1)
		_ = n.asker.TellReserved(nudge{}) // or it has stopped
	})
}

// fly asks the node for blocks and answers the lookups.
func (n *node) fly(batch []*lookup, began time.Time) {
	ctx, cancel := context.WithDeadline(n.ctx, n.deadline(batch, began))
	defer cancel()
	sels := make([]schema.Selector, len(batch))
	for i, l := range batch {
		sels[i] = l.sel
	}
	outcomes := n.blocksContained(ctx, sels)
	now := time.Now()
	n.heard.Store(now.UnixNano())
	n.note(outcomes, now.Sub(began))
	for i, l := range batch {
		if l.sel.Kind() == schema.ByNumber && errors.Is(outcomes[i].err, ErrPruned) {
			n.lacks.note(l.sel.Number(), now)
		}
		l.to <- outcomes[i]
	}
}

// deadline is the end of a round trip's time: that of its most patient lookup.
func (n *node) deadline(batch []*lookup, now time.Time) time.Time {
	latest := time.Time{}
	for _, l := range batch {
		end := now.Add(n.cfg.CallTimeout)
		if deadline, ok := l.ctx.Deadline(); ok && (l.patient || deadline.Before(end)) {
			end = deadline
		}
		if end.After(latest) {
			latest = end
		}
	}
	return latest
}

// blocksContained contains a panic of blocks: it must not end the process for the sake of
// a few blocks.
func (n *node) blocksContained(ctx context.Context, sels []schema.Selector) (outcomes []outcome) {
	defer func() {
		if v := recover(); v != nil {
			n.log.Error("panic while asking a node", "panic", v, "stack", string(debug.Stack()))
			outcomes = n.allFailed(sels, fmt.Errorf("%w: panic: %v", ErrFailed, v))
		}
	}()
	return n.blocks(ctx, sels)
}

func (n *node) allFailed(sels []schema.Selector, err error) []outcome {
	outcomes := make([]outcome, len(sels))
	for i := range outcomes {
		outcomes[i] = outcome{node: n, err: err}
	}
	return outcomes
}

// note takes a round trip for what it says of the node. The worst of its outcomes counts.
func (n *node) note(outcomes []outcome, took time.Duration) {
	var worst error
	good := false
	for _, o := range outcomes {
		n.metrics.count(o.err, o.found)
		good = good || o.err == nil
		if o.err != nil && (worst == nil || errors.Is(o.err, ErrUntrue)) {
			worst = o.err
		}
	}
	n.metrics.observe(took)
	if good {
		n.hushed.Store(false)
	}
	if good || errors.Is(worst, errNoAnswer) { // to fail is quick
		n.pace.took(time.Now(), took, good)
	}
	n.health.landed()
	switch {
	case n.ctx.Err() != nil: // it is being closed
	case worst == nil || good && !errors.Is(worst, ErrUntrue) && !errors.Is(worst, ErrOverloaded):
		n.succeeded()
	default:
		n.failed(worst)
	}
}
