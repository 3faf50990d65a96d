package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/schema"
)

// patience is how long nodes may all be behind the view before it is believed that the
// chain has gone back, and how long the view is good without a node that tells of a
// block in it. It covers a few looks at a node that is slow to answer, and a slot.
const patience = 15 * time.Second

// farthest is how far a head may be above the view's to be joined to it, which takes a
// question per block. A view that has fallen further behind starts anew.
const farthest = 64

// canon makes one chain of what the nodes say of their heads, by these rules:
//
//   - A head is believed when it hashes to its hash, its uncles are to be had, and its
//     ancestors, asked for by their hashes, lead to the view; where they do not within
//     its reach, when at least its parent exists.
//   - A head above the view's is followed, wherever it branches off.
//   - A head that is in the view below its tip is that of a node which is behind. Only
//     when no node that is up has been at the tip for patience, the chain has gone back.
//   - Another block at a height of the view, or one below it, is a reorg only if no
//     other node that is up stands by the view at that height or above. So one of
//     several nodes that disagree does not take the view back, and the only one is
//     followed at once wherever it goes.
//   - Nothing final is displaced, unless the view has been without a node for patience.
//   - Safe and finalized are believed of a node whose head is in the view, and do not
//     go back but with a reorg that displaces them.
type canon struct {
	log      *slog.Logger
	start    time.Time
	patience time.Duration
	depth    uint64 // Config.Finality

	state atomic.Pointer[View] // nil before the first head
	told  atomic.Int64         // when a node has last told of a block in the view, since start

	mu    sync.Mutex // of changes of state, and of:
	heads map[*node]*Placed
	stood time.Time // when a node was last at the tip
}

func newCanon(cfg *Config) *canon {
	return &canon{
		log: cfg.Logger, start: time.Now(), patience: max(patience, 8*cfg.PollInterval), depth: cfg.Finality,
		heads: make(map[*node]*Placed),
	}
}

// View returns what is known of the chain near its head, nil when nothing is, or when no
// node has confirmed it for some seconds.
func (s *Set) View(now time.Time) *View {
	if v := s.canon.state.Load(); v != nil && s.canon.age(now) <= s.canon.patience {
		return v
	}
	return nil
}

// age is how long ago a node has told of a block in the view.
func (c *canon) age(now time.Time) time.Duration {
	return now.Sub(c.start) - time.Duration(c.told.Load())
}

// held returns a block of the view: by its hash, or by its number where that is final.
func (c *canon) held(s schema.Selector) (Block, bool) {
	v := c.state.Load()
	if v == nil || s.Kind() == schema.ByTag || s.Kind() == schema.ByNumber && !v.Final(s.Number()) {
		return Block{}, false
	}
	p := v.At(s)
	if p == nil {
		return Block{}, false
	}
	b := p.Block
	b.Final = v.Final(p.Number)
	return b, true
}

// final is the highest block that is deep enough to be final, false when none is.
func (c *canon) final() (uint64, bool) {
	v := c.state.Load()
	if v == nil || v.depth == 0 || v.tip < v.depth {
		return 0, false
	}
	return v.tip - v.depth, true
}

// What keeps a head from being followed, other than a false one.
var (
	errNowhere = errors.New("to be had from nobody")   // it, or its parent
	errNotYet  = errors.New("not to be had right now") // other nodes' failures
)

// tell takes in what a node says its head is.
func (s *Set) tell(ctx context.Context, n *node, header *types.Header) error {
	c := s.canon
	head := place(Block{Header: header})
	var branch []*Placed
	for {
		v := c.state.Load()
		if !c.wants(v, n, head) {
			return nil
		}
		if branch == nil {
			whole, err := s.whole(ctx, head)
			if err != nil {
				return err
			}
			branch = []*Placed{whole}
		}
		grown, joined, err := s.grow(ctx, v, branch)
		if err != nil {
			return err
		}
		branch = grown
		if c.adopt(v, n, branch, joined) {
			return nil
		}
	}
}

// wants reports whether a head is to be followed. It takes note of one that needs not
// be, because it is in the view.
func (c *canon) wants(v *View, n *node, head *Placed) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.heads[n] = head
	switch {
	case v == nil || v != c.state.Load() || head.Number > v.tip:
		return true
	case !v.holds(head.Number, head.Hash):
		return !c.supported(v, n, head.Number)
	}
	c.told.Store(int64(now.Sub(c.start)))
	if head.Number == v.tip {
		c.stood = now
	} else if c.abandoned(now) && c.leads(n, head.Number) {
		c.log.Warn("the chain has gone back", "from", v.tip, "to", head.Number)
		c.state.Store(v.cut(head.Number))
		c.stood = now
	}
	return false
}

// supported reports whether another node that is up has a head in the view, as high as
// a number or higher.
func (c *canon) supported(v *View, than *node, number uint64) bool {
	for n, head := range c.heads {
		if n != than && n.health.reason() == nil && head.Number >= number && v.holds(head.Number, head.Hash) {
			return true
		}
	}
	return false
}

// leads reports whether no other node that is up has a higher head.
func (c *canon) leads(node *node, number uint64) bool {
	for n, head := range c.heads {
		if n != node && n.health.reason() == nil && head.Number > number {
			return false
		}
	}
	return true
}

// abandoned reports whether no node has been at the tip for patience.
func (c *canon) abandoned(now time.Time) bool { return now.Sub(c.stood) > c.patience }

// adopt makes a branch the end of the view v. It returns false when that is no longer
// the view, and the branch may have to join it elsewhere.
func (c *canon) adopt(v *View, n *node, branch []*Placed, joined bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v != c.state.Load() {
		return false
	}
	now := time.Now()
	head, lowest := branch[0], branch[len(branch)-1]
	displaced := uint64(0)
	if v != nil && lowest.Number <= v.tip {
		if displaced = v.tip - v.first + 1; joined {
			displaced = v.tip - lowest.Number + 1
		}
		if v.Final(lowest.Number) && !c.abandoned(now) {
			if n.refused != head.Hash {
				n.refused = head.Hash
				n.log.Warn("a head that displaces final blocks is not followed", "head", head.Number, "branch", lowest.Number)
			}
			return true
		}
	}
	next := v.with(branch, joined)
	next.depth = c.depth
	if displaced > 0 {
		next.reorgs, next.displaced = next.reorgs+1, displaced
	}
	c.state.Store(next)
	c.stood = now
	c.told.Store(int64(now.Sub(c.start)))
	if displaced > 0 {
		n.log.Info("reorg", "blocks", displaced, "from", v.tip, "to", head.Number)
	}
	return true
}

// grow asks for the ancestors of a branch until one follows on a block of the view, or
// it is clear that none will.
func (s *Set) grow(ctx context.Context, v *View, branch []*Placed) (grown []*Placed, joined bool, err error) {
	for {
		head, lowest := branch[0], branch[len(branch)-1]
		if lowest.Number == 0 {
			return branch, false, nil
		}
		if v != nil && v.holds(lowest.Number-1, lowest.parent()) {
			return branch, true, nil
		}
		reach := v != nil && lowest.Number > v.first && len(branch) < Window && head.Number <= v.tip+farthest
		if len(branch) > 1 && !reach {
			return branch, false, nil
		}
		parent, err := s.named(ctx, lowest.parent())
		if err != nil {
			return branch, false, fmt.Errorf("the parent of block %d: %w", lowest.Number, err)
		}
		if parent.Number != lowest.Number-1 {
			return branch, false, fmt.Errorf("%w: block %d has block %d for its parent", ErrUntrue, lowest.Number, parent.Number)
		}
		branch = append(branch, parent)
	}
}

// whole returns a block of which there is only the header with its uncles.
func (s *Set) whole(ctx context.Context, p *Placed) (*Placed, error) {
	if !p.Uncled() {
		return p, nil
	}
	whole, err := s.named(ctx, p.Hash)
	if err != nil {
		return nil, fmt.Errorf("block %d: %w", p.Number, err)
	}
	return whole, nil
}

// named asks for a block by its hash. Whoever has it will do: it proves itself.
func (s *Set) named(ctx context.Context, hash schema.Hash) (*Placed, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	b, found, err := s.Block(ctx, schema.BlockHash(hash))
	switch {
	case err != nil: // counted against those who are at fault
		return nil, fmt.Errorf("%w: %s", errNotYet, err.Error())
	case !found:
		return nil, errNowhere
	}
	return place(b), nil
}

// tellTag takes in what a node, whose head is the one given, says is safe or finalized.
func (s *Set) tellTag(ctx context.Context, head *types.Header, t schema.Tag, header *types.Header) error {
	c := s.canon
	p := place(Block{Header: header})
	v := c.state.Load()
	if v == nil || v.tagged(t, p) == v { // nothing new
		return nil
	}
	p, err := s.whole(ctx, p)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v = c.state.Load(); v.holds(head.Number.Uint64(), schema.Hash(head.Hash())) {
		c.state.Store(v.tagged(t, p))
	}
	return nil
}
