package upstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ommer/ommer/schema"
)

// chase is one question for a block on its way through the nodes, until one of them has
// given an answer that is worth having.
type chase struct {
	set      *Set
	ctx      context.Context
	sel      schema.Selector
	order    []*node
	next     int           // in order
	asked    []*node       // and have not answered
	patience time.Duration // with those
	answers  chan outcome  // has room for one of each
	failures asked
	missing  bool // a node knows of no such block
}

// relook is how often a node that is waited for is looked at, once a hedge is due.
const relook = 100 * time.Millisecond

// run asks the nodes. Each is asked when the one before has failed, seems to hang, or
// takes longer than it nearly ever does and there is credit for a hedge. done is false
// when none of them has given an answer that counts.
func (c *chase) run() (b Block, found, done bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for len(c.asked) > 0 || c.askNext() {
		timer.Reset(c.patience)
		select {
		case o := <-c.answers:
			c.asked = slices.DeleteFunc(c.asked, func(n *node) bool { return n == o.node })
			switch {
			case o.err != nil:
				c.fail(o.node, o.err)
			case o.found:
				return o.block, true, true
			case c.set.oneIsEnough(c.sel):
				return Block{}, false, true
			default:
				c.missing, c.patience = true, relook
			}
		case <-timer.C:
			c.hedge(time.Now())
		case <-c.ctx.Done():
			for _, n := range c.asked {
				c.fail(n, errSilent)
			}
			return Block{}, false, false
		}
	}
	return Block{}, false, false
}

// hedge asks one more node, since those that were asked take long. When nobody is left, and
// a node knows of no such block, those that seem to hang need not confirm it.
func (c *chase) hedge(now time.Time) {
	c.patience = relook
	hung := slices.DeleteFunc(slices.Clone(c.asked), func(n *node) bool { return !n.silent(now) })
	for _, n := range hung {
		if n.hushed.CompareAndSwap(false, true) {
			n.log.Warn("upstream keeps silent")
		}
	}
	switch {
	case c.next == len(c.order) && c.missing:
		for _, n := range hung {
			c.asked = slices.DeleteFunc(c.asked, func(o *node) bool { return o == n })
			c.fail(n, errSilent)
		}
	case c.next == len(c.order):
		c.patience = time.Hour
	case len(hung) == len(c.asked) || c.set.credit.spend():
		if c.askNext() {
			c.set.metrics.hedged()
		}
	}
}

var errSilent = fmt.Errorf("%w: %w", ErrUnreachable, errNoAnswer)

func (c *chase) fail(n *node, err error) {
	c.failures = append(c.failures, fmt.Errorf("%s: %w", n.name, err))
}

// askNext asks the next node that takes the lookup, false when there is none.
func (c *chase) askNext() bool {
	for c.next < len(c.order) && c.ctx.Err() == nil {
		n := c.order[c.next]
		c.next++
		l := &lookup{ctx: c.ctx, sel: c.sel, patient: c.next == len(c.order), to: c.answers, node: n}
		err := n.ask(l)
		if err == nil {
			c.asked, c.patience = append(c.asked, n), n.hedgePause()
			return true
		}
		n.metrics.count(err, false)
		c.fail(n, err)
	}
	return false
}
