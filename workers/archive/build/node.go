package build

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/archive"
	"github.com/ommer/ommer/workers/upstream"
)

// How a node is asked.
const (
	nodePiece    = 1024 // blocks in a piece, so that little is lost when a build ends
	nodeRow      = 64   // blocks in a round trip
	nodePieces   = 4    // at a time
	nodeResponse = 64 << 20
	callTimeout  = 30 * time.Second
)

// Those who cannot be reached, or are overloaded, are asked again.
const (
	tries      = 6
	firstPause = 500 * time.Millisecond // doubled each time
)

// node is an Ethereum node.
type node struct {
	set         *upstream.Set
	name        string
	first, last *uint64
}

func openNode(c Config) (source, error) {
	set, err := upstream.New(upstream.Config{URLs: []string{c.From}, MaxResponse: nodeResponse})
	if err != nil {
		return nil, err
	}
	return &node{set: set, name: upstream.Redact(c.From), first: c.First, last: c.Last}, nil
}

func (n *node) pieces(ctx context.Context, done []archive.Range) (todo []piece, err error) {
	first, last, err := n.bounds(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range done {
		if r.First < first || r.Last > last {
			return nil, errElse(r)
		}
	}
	for first <= last {
		if len(done) > 0 && done[0].First == first {
			first, done = done[0].Last+1, done[1:]
			continue
		}
		end := min(last, first-first%nodePiece+nodePiece-1)
		if len(done) > 0 {
			end = min(end, done[0].First-1)
		}
		p := piece{name: n.name, first: first, last: end}
		p.load = func(ctx context.Context) (*archive.Segment, error) { return n.read(ctx, p.first, p.last) }
		todo = append(todo, p)
		first = end + 1
	}
	return todo, nil
}

// bounds are the first and the last block to read.
func (n *node) bounds(ctx context.Context) (first, last uint64, err error) {
	final, found, err := n.header(ctx, schema.Tagged(schema.Finalized))
	switch {
	case err != nil:
		return 0, 0, err
	case n.last != nil:
		last = *n.last
		if found && last > final.Number.Uint64() {
			return 0, 0, fmt.Errorf("%w: block %d is not final at %s, block %v is", ErrSource, last, n.name, final.Number)
		}
	case found:
		last = final.Number.Uint64()
	default:
		return 0, 0, fmt.Errorf("%w: %s has no finalized block; --last says up to which one its blocks will stay", ErrSource, n.name)
	}
	if n.first != nil {
		first = *n.first
	} else {
		earliest, found, err := n.header(ctx, schema.Tagged(schema.Earliest))
		if err != nil {
			return 0, 0, err
		}
		if found {
			first = earliest.Number.Uint64()
		}
	}
	if n.last == nil {
		if last, err = n.lastBeforeMerge(ctx, first, last); err != nil {
			return 0, 0, err
		}
	}
	if first > last {
		return 0, 0, fmt.Errorf("%w: %s is asked for blocks %d to %d", ErrSource, n.name, first, last)
	}
	return first, last, nil
}

// lastBeforeMerge finds the last block in first to last that may have uncles: since
// the merge none has, and the difficulty is zero (EIP-3675).
func (n *node) lastBeforeMerge(ctx context.Context, first, last uint64) (uint64, error) {
	merged := func(number uint64) (bool, error) {
		h, found, err := n.header(ctx, schema.Number(number))
		if err == nil && !found {
			err = fmt.Errorf("%w: %s does not have block %d", ErrSource, n.name, number)
		}
		return err == nil && h.Difficulty.Sign() == 0, err
	}
	if is, err := merged(last); err != nil || !is {
		return last, err
	}
	if is, err := merged(first); err != nil {
		return 0, err
	} else if is {
		return 0, fmt.Errorf("%w: %s has no block from before the merge, its first one is %d", ErrSource, n.name, first)
	}
	for first+1 < last { // first is from before it, last is not
		middle := first + (last-first)/2
		is, err := merged(middle)
		switch {
		case err != nil:
			return 0, err
		case is:
			last = middle
		default:
			first = middle
		}
	}
	return first, nil
}

func (n *node) header(ctx context.Context, s schema.Selector) (h *types.Header, found bool, err error) {
	err = again(ctx, func(ctx context.Context) error {
		b, ok, err := n.set.Block(ctx, s)
		h, found = b.Header, ok
		return err
	})
	return h, found, err
}

// read reads blocks, checks that they are a chain, and keeps their uncles.
func (n *node) read(ctx context.Context, first, last uint64) (*archive.Segment, error) {
	s := new(archive.Segment)
	for first <= last {
		var row []upstream.Block
		err := again(ctx, func(ctx context.Context) (err error) {
			row, err = n.set.Row(ctx, first, int(min(nodeRow, last-first+1)))
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, b := range row {
			list, err := rlp.EncodeToBytes(b.Uncles)
			if err == nil {
				err = s.Add(b.Header, b.Header.Hash(), list)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n.name, err)
			}
		}
		first += uint64(len(row))
	}
	s.Chain.ID, _ = n.set.ChainID()
	return s, nil
}

// again calls f until it works, fails for good, or has failed too often.
func again(ctx context.Context, f func(ctx context.Context) error) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := within(ctx, f)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case try == tries, !errors.Is(err, upstream.ErrUnreachable) && !errors.Is(err, upstream.ErrOverloaded):
			return err
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

func within(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return f(ctx)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (*node) beside() int { return nodePieces }

func (n *node) close() { n.set.Close() }
