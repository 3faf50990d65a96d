package upstream

import (
	"context"
	"fmt"
	"time"

	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/schema"
)

// Set asks several nodes as one.
type Set struct {
	cfg     Config
	nodes   []*node // in the order of the configuration
	chain   chain
	canon   *canon // what they say of their heads
	system  *actor.System
	credit  credit
	metrics *setMetrics

	unregister func() // takes the metrics back
}

// New returns a Set. It connects to nothing yet: the nodes may come up later. Close or
// Run ends it.
func New(c Config) (*Set, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Set{cfg: cfg, canon: newCanon(&cfg), unregister: func() {}}
	s.chain.id = cfg.ChainID
	for i, name := range names(cfg.URLs) {
		n, err := newNode(&s.cfg, cfg.URLs[i], name, cfg.preset(i), &s.chain, s.canon)
		if err != nil {
			return nil, err // withDefaults has looked at them
		}
		s.nodes = append(s.nodes, n)
	}
	s.system, err = actor.NewSystem(actor.Config{Name: "upstreams", Logger: cfg.Logger, Registerer: cfg.Registerer})
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	for _, n := range s.nodes {
		if err := n.spawn(s.system); err != nil {
			s.Close()
			return nil, fmt.Errorf("upstream: %w", err)
		}
	}
	if s.unregister, err = s.register(cfg.Registerer); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Actors are those of the nodes, for the operator's page.
func (s *Set) Actors() *actor.System { return s.system }

// Block returns the block that s selects; found is false when there is none.
//
// The nodes are asked one after the other, or a second one beside a slow one, until one
// gives an answer that is worth having. That there is no such block is taken from one
// node when it is asked by a tag or for a number above every head seen; otherwise
// all that can be reached have to say so, as a node may lag or have dropped the
// block. When all say so of a finalized number, the error is ErrPruned.
//
// A block that the View holds is not asked for: by its hash, or by its number once it is
// final.
//
// The error tells what each node that was asked failed with. Where one of them could not
// be reached, all are asked once more after a short pause.
func (s *Set) Block(ctx context.Context, sel schema.Selector) (b Block, found bool, err error) {
	if b, held := s.canon.held(sel); held {
		return b, true, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what still waits for its turn need not go
	s.credit.earn()
	var c *chase
	for round := range 2 {
		if round > 0 && !pause(ctx, roundPause) {
			break
		}
		order := s.order(sel, time.Now())
		c = &chase{set: s, ctx: ctx, sel: sel, order: order, answers: make(chan outcome, len(order))}
		if b, found, done := c.run(); done {
			return b, found, nil
		}
		if c.missing || !c.failures.unreachable() || ctx.Err() != nil {
			break
		}
	}
	if !c.missing {
		return Block{}, false, c.failures
	}
	if finalized, ok := s.Finalized(); ok && sel.Kind() == schema.ByNumber && sel.Number() <= finalized {
		return Block{}, false, append(c.failures, fmt.Errorf("%w: no node has the block, which is final", ErrPruned))
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

// oneIsEnough reports whether a single node's word that there is no such block is
// believed.
func (s *Set) oneIsEnough(sel schema.Selector) bool {
	if sel.Kind() == schema.ByTag {
		return true
	}
	latest, ok := s.Latest()
	return sel.Kind() == schema.ByNumber && ok && sel.Number() > latest
}

// ChainID returns the ID of the chain that the nodes serve, false before it is known.
func (s *Set) ChainID() (uint64, bool) { return s.chain.get() }

// Ready returns nil when a lookup would be answered: at least one node is of use. Else
// it returns what each of them failed with.
func (s *Set) Ready() error {
	var failures asked
	now := time.Now()
	for _, n := range s.nodes {
		err := n.health.useless(now)
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
		n.cancel()
	}
	_ = s.system.Stop(context.Background()) // nothing there waits for anything
	for _, n := range s.nodes {
		n.close()
	}
	s.unregister()
}
