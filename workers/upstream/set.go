package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ommer/ommer/schema"
)

// Set asks several nodes as one.
type Set struct {
	cfg   Config
	nodes []*node // in order of preference
	chain chain
	canon *canon // what they say of their heads

	unregister func() // takes the metrics back
}

// New returns a Set. It connects to nothing yet: the nodes may come up later.
func New(c Config) (*Set, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Set{cfg: cfg, canon: newCanon(&cfg)}
	s.chain.id = cfg.ChainID
	for i, name := range names(cfg.URLs) {
		s.nodes = append(s.nodes, newNode(&s.cfg, cfg.URLs[i], name, &s.chain, s.canon))
	}
	if s.unregister, err = registerMetrics(cfg.Registerer, s.nodes, s.canon.collectors()...); err != nil {
		return nil, err
	}
	return s, nil
}

// Block returns the block that s selects; found is false when there is none.
//
// The nodes are asked one after the other until one gives an answer that is worth
// having, those that are down last. That there is no such block is taken from one
// node when it is asked by a tag or for a number above every head seen; otherwise
// all that can be reached have to say so, as a node may lag or have dropped the
// block. When all say so of a finalized number, the error is ErrPruned.
//
// A block that the View holds is not asked for: by its hash, or by its number once it is
// final.
//
// The error tells what each node that was asked failed with. Where only nodes that
// cannot be reached were left, they are asked once more after a short pause.
func (s *Set) Block(ctx context.Context, sel schema.Selector) (b Block, found bool, err error) {
	if b, held := s.canon.held(sel); held {
		return b, true, nil
	}
	missing := false
	var failures asked
	for round := range 2 {
		if round > 0 && !pause(ctx, roundPause) {
			break
		}
		order := s.order(time.Now())
		failures = nil
		for i, n := range order {
			b, found, err = n.lookup(ctx, sel, len(order)-i)
			switch {
			case err != nil:
				failures = append(failures, fmt.Errorf("%s: %w", n.name, err))
			case found:
				return b, true, nil
			case s.oneIsEnough(sel):
				return Block{}, false, nil
			default:
				missing = true
			}
			if ctx.Err() != nil {
				break
			}
		}
		if missing || !failures.unreachable() || ctx.Err() != nil {
			break
		}
	}
	if !missing {
		return Block{}, false, failures
	}
	if finalized, ok := s.Finalized(); ok && sel.Kind() == schema.ByNumber && sel.Number() <= finalized {
		return Block{}, false, append(failures, fmt.Errorf("%w: no node has finalized the block", ErrPruned))
	}
	return Block{}, false, nil
}

// roundPause is long enough for a node that restarts behind a balancer to be taken
// out of it, and short against any deadline.
const roundPause = 100 * time.Millisecond

// pause waits for d and reports whether ctx still lasts.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// order is the nodes in the order in which they are to be asked now.
func (s *Set) order(now time.Time) []*node {
	order, last := make([]*node, 0, len(s.nodes)), []*node(nil)
	for _, n := range s.nodes {
		if n.health.last(now) {
			last = append(last, n)
		} else {
			order = append(order, n)
		}
	}
	return slices.Concat(order, last)
}

// oneIsEnough reports whether a single node's word that there is no such block is
// believed.
func (s *Set) oneIsEnough(sel schema.Selector) bool {
	if sel.Kind() == schema.ByTag {
		return true
	}
	latest, ok := s.Latest()
	return sel.Kind() == schema.ByNumber && ok && sel.Number() > latest
}

// lookup is one attempt at one node, within its share of the time: the nodes left,
// this one included, divide what there is.
func (n *node) lookup(ctx context.Context, sel schema.Selector, nodesLeft int) (Block, bool, error) {
	if err := n.enter(ctx); err != nil {
		n.metrics.count(err, false)
		return Block{}, false, err
	}
	defer n.leave()
	if nodesLeft > 1 {
		share := n.cfg.CallTimeout
		if deadline, ok := ctx.Deadline(); ok {
			share = min(share, time.Until(deadline)/time.Duration(nodesLeft))
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	start := time.Now()
	b, found, err := n.block(ctx, sel)
	n.metrics.observe(time.Since(start))
	n.metrics.count(err, found)
	switch {
	case err == nil:
		n.succeeded()
	case !errors.Is(ctx.Err(), context.Canceled): // the caller lost interest: says nothing about the node
		n.failed(err)
	}
	return b, found, err
}

// ChainID returns the ID of the chain that the nodes serve, false before it is known.
func (s *Set) ChainID() (uint64, bool) { return s.chain.get() }

// Ready returns nil when a lookup would be answered: at least one node is up. Else
// it returns what each of them failed with.
func (s *Set) Ready() error {
	var failures asked
	for _, n := range s.nodes {
		err := n.health.reason()
		if err == nil {
			return nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", n.name, err))
	}
	return failures
}

// Close ends every connection and whatever runs in the background, and waits for
// it. Lookups under way fail. Run does it at its end.
func (s *Set) Close() {
	for _, n := range s.nodes {
		n.close()
	}
	s.unregister()
}
