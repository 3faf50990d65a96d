package check

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/ommer/ommer/workers/upstream"
)

// neighbours is how many blocks are looked at for one that is not empty.
const neighbours = 4

// findHistory searches for the lowest block that the node holds whole. Nodes drop
// blocks from the lower end, so that a binary search finds it: 24 calls on main net.
func (n *node) findHistory(ctx context.Context) {
	if n.Head == nil {
		n.unknown("history", errors.New("the head is not known"))
		return
	}
	from, err := n.lowest(ctx, n.Head.Number)
	if err != nil {
		n.unknown("history", err)
		return
	}
	n.History = &History{From: from, All: from <= 1}
	n.findState(ctx, from)
}

// lowest returns the lowest block that is held, beside the genesis block.
func (n *node) lowest(ctx context.Context, head uint64) (uint64, error) {
	if head == 0 {
		return 0, nil
	}
	// The first blocks of a chain are often empty, which proves little.
	starts := []uint64{1}
	if n.facts.uncles > 0 && n.facts.uncles < head {
		starts = append(starts, n.facts.uncles)
	}
	missing := uint64(0) // the highest that is known not to be there
	for _, number := range starts {
		switch is, err := n.holds(ctx, number, head); {
		case err != nil:
			return 0, err
		case !is:
			missing = number
		}
	}
	if missing == 0 {
		return 1, nil
	}
	there := head
	if is, err := n.holds(ctx, head, head); err != nil || !is {
		return 0, errors.Join(err, errors.New("not even its head has a body"))
	}
	for missing+1 < there {
		middle := missing + (there-missing)/2
		is, err := n.holds(ctx, middle, head)
		switch {
		case err != nil:
			return 0, err
		case is:
			there = middle
		default:
			missing = middle
		}
	}
	return there, nil
}

// holds says whether the node holds a block whole. Where it is empty, those behind it
// tell; what nothing speaks against is held.
func (n *node) holds(ctx context.Context, number, head uint64) (bool, error) {
	for at := number; at < number+neighbours && at <= head; at++ {
		b, err := n.numbered(ctx, at)
		switch {
		case errors.Is(err, upstream.ErrPruned):
			return false, nil
		case err != nil:
			return false, err
		case b == nil: // below the head: what Besu and Nethermind say of a dropped block
			return false, nil
		}
		if is := b.body(); is != unclear {
			return is == held, nil
		}
	}
	return true, nil
}

// findState asks for an account at the lowest block. Lookups of uncles need no state;
// it tells archive nodes from others.
func (n *node) findState(ctx context.Context, number uint64) {
	const anyone = "0x0000000000000000000000000000000000000000"
	var balance hexutil.Big
	err := n.call(ctx, &balance, "eth_getBalance", anyone, hexutil.Uint64(number))
	switch {
	case err == nil:
		n.State = &State{Block: number, Held: true}
	case refused(err) && !absent(err) && !errors.Is(err, upstream.ErrOverloaded):
		n.State = &State{Block: number} // the texts differ: missing trie node, state is not available
	default:
		n.unknown("state", err)
	}
}
