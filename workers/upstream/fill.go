package upstream

import (
	"context"
	"fmt"

	"github.com/ommer/ommer/schema"
)

// A View begins with the head that a node told of first. That proves what stands below it,
// block by block. Until it is there, and below what is final, numbers are answered by the
// word of the node that is asked.

// lowest is the number from which on a View is to hold the chain.
func (v *View) lowest() uint64 {
	from := uint64(0)
	if v.tip >= Window {
		from = v.tip - Window + 1
	}
	if number, ok := v.Finalized(); ok {
		from = max(from, number+1)
	}
	return from
}

// below returns a View that also holds blocks which end where v begins, false when they do
// not lead to it.
func (v *View) below(row []Block) (*View, bool) {
	next := *v
	for i := len(row) - 1; i >= 0; i-- {
		p := place(row[i])
		if p.Number != next.first-1 || p.Hash != next.blocks[next.first%Window].parent() {
			return v, false
		}
		next.first = p.Number
		next.blocks[p.Number%Window] = p
	}
	return &next, true
}

// fillAtOnce is how many blocks are asked for in one round trip.
const fillAtOnce = 32

// fill asks a node whose head is in the view for the blocks that the view lacks. A chain
// that has merged lacks none, as none of them can have uncles.
func (f *follower) fill(ctx context.Context) error {
	for c := f.set.canon; ; {
		v := c.state.Load()
		if v == nil || !v.holds(f.head.Number.Uint64(), schema.Hash(f.head.Hash())) ||
			v.first <= v.lowest() || v.at(v.first).Header.Difficulty.Sign() == 0 {
			return nil
		}
		count := min(v.first-v.lowest(), fillAtOnce)
		row, err := f.row(ctx, v.first-count, int(count))
		if err != nil {
			return err
		}
		next, ok := v.below(row)
		if !ok { // or it has just changed its mind
			return fmt.Errorf("what it says stands below block %d is not its past", v.first)
		}
		c.mu.Lock()
		if v == c.state.Load() {
			c.state.Store(next)
		}
		c.mu.Unlock()
	}
}

func (f *follower) row(ctx context.Context, first uint64, count int) ([]Block, error) {
	ctx, cancel := context.WithTimeout(ctx, f.node.cfg.CallTimeout)
	defer cancel()
	return f.node.row(ctx, first, count)
}
