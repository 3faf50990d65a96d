package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// batchSizes are the numbers of calls that are tried in a batch.
var batchSizes = []int{100, 30, 10, 3}

// Blocks with uncles cannot be searched for, only met: one in ten or twenty has some
// where blocks are mined. Rounds of samples end when one was met.
const (
	rounds  = 4  // of a batch each
	singles = 10 // samples where no batch is accepted
)

// findUncles tries batches with a question that is of use: which blocks have uncles.
// Then it asks for the uncles of one.
func (n *node) findUncles(ctx context.Context) {
	if n.Head == nil {
		n.unknown("uncles", errors.New("the head is not known"))
		n.unknown("batch", errors.New("the head is not known"))
		return
	}
	n.Uncles = &Uncles{First: 1, Last: n.Head.Number}
	if n.History != nil {
		n.Uncles.First = n.History.From
	}
	if err := n.findMerge(ctx); err != nil {
		n.unknown("merge", err)
	}
	counted := n.findBatch(ctx)
	b, err := n.withUncles(ctx, counted)
	if err != nil {
		n.unknown("uncles", err)
	}
	if b != nil {
		number := b.header.Number.Uint64()
		n.Uncles.Block = &number
	} else if b, err = n.numbered(ctx, n.Uncles.First); err != nil || b == nil {
		n.unknown("uncles", fmt.Errorf("no block to ask with: %w", errors.Join(err, upstream.ErrNoBlock)))
		n.Uncles = nil
		return
	}
	n.Uncles.ByNumber = n.ask(ctx, schema.UncleByNumber.String(), hexutil.Uint64(b.header.Number.Uint64()).String(), b)
	n.Uncles.ByHash = n.ask(ctx, schema.UncleByHash.String(), b.hash.Hex(), b)
}

// findMerge bounds the blocks that may have uncles: Last becomes the last one that was
// mined.
func (n *node) findMerge(ctx context.Context) error {
	u := n.Uncles
	if n.facts.work {
		u.Merged = u.First > n.facts.lastWork
		if !u.Merged {
			u.Last = min(u.Last, n.facts.lastWork)
		}
		return nil
	}
	merged := func(number uint64) (bool, error) {
		b, err := n.numbered(ctx, number)
		if err == nil && b == nil {
			err = fmt.Errorf("block %d: %w", number, upstream.ErrNoBlock)
		}
		return err == nil && b.merged(), err
	}
	if is, err := merged(u.Last); err != nil || !is {
		return err
	}
	if is, err := merged(u.First); err != nil || is {
		u.Merged = is
		return err
	}
	mined, after := u.First, u.Last
	for mined+1 < after {
		middle := mined + (after-mined)/2
		is, err := merged(middle)
		switch {
		case err != nil:
			return err
		case is:
			after = middle
		default:
			mined = middle
		}
	}
	u.Last = mined
	return nil
}

// findBatch finds the largest batch that is accepted, and returns which of the blocks
// in it have uncles, as the node says.
func (n *node) findBatch(ctx context.Context) (with []uint64) {
	none := 0
	for _, size := range batchSizes {
		with, err := n.sample(ctx, size, 0)
		switch {
		case err == nil:
			n.Batch = &size
			delete(n.Unknown, "batch")
			return with
		case ctx.Err() != nil:
			n.unknown("batch", err)
			return nil
		}
		n.unknown("batch", fmt.Errorf("a batch of %d calls: %w", size, err)) // the last one stays
	}
	n.Batch = &none
	return nil
}

// errBatch is what a batch ends with of which not every call was answered.
var errBatch = errors.New("refused")

// sample asks how many uncles size blocks have, in one batch. They are spread over
// those that may have some, those of each round between those of the others.
func (n *node) sample(ctx context.Context, size, round int) (with []uint64, err error) {
	numbers := n.spread(size, round)
	counts, batch := make([]*hexutil.Uint64, size), make([]rpc.BatchElem, size)
	for i, number := range numbers {
		batch[i] = rpc.BatchElem{Method: "eth_getUncleCountByBlockNumber", Args: []any{hexutil.Uint64(number)}, Result: &counts[i]}
	}
	if err := n.batch(ctx, batch); err != nil {
		return nil, err
	}
	for i := range batch {
		err := batch[i].Error
		if said, ok := errors.AsType[rpc.Error](err); ok && said.ErrorCode() != -32600 {
			continue // an answer, if not the wanted one
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errBatch, n.clean(err))
		}
	}
	return n.count(numbers, counts), nil
}

// spread returns numbers of blocks that may have uncles.
func (n *node) spread(size, round int) []uint64 {
	numbers, u := make([]uint64, size), n.Uncles
	span := u.Last - u.First + 1
	for i := range numbers {
		// In floating point, as the product may be over 64 bits; which block it is
		// exactly does not matter.
		at := float64(span) * (float64(i) + (float64(round)+0.5)/rounds) / float64(size)
		numbers[i] = u.First + min(uint64(at), span-1)
	}
	return numbers
}

// count records samples and returns those that have uncles, those with two first.
func (n *node) count(numbers []uint64, counts []*hexutil.Uint64) (with []uint64) {
	seen := make(map[uint64]bool) // a short chain has fewer blocks than a batch has calls
	var two []uint64
	for i, number := range numbers {
		if counts[i] == nil || seen[number] {
			continue
		}
		seen[number] = true
		n.Uncles.Samples++
		switch *counts[i] {
		case 0:
			continue
		case upstream.MaxUncles:
			two = append(two, number)
		default:
			with = append(with, number)
		}
		n.Uncles.Found++
	}
	return append(two, with...)
}

// withUncles returns a block that has uncles by what its header commits to, with two of
// them if there is one, as these prove more: the known one, one that the search for the
// first block met, or one of the samples, of which more are taken if need be. It is nil
// when there is none of these.
func (n *node) withUncles(ctx context.Context, counted []uint64) (*block, error) {
	u := n.Uncles
	if at := n.facts.uncles; at >= u.First && at > 0 && at <= u.Last {
		if _, err := n.numbered(ctx, at); err != nil {
			return nil, err
		}
	}
	var best *block
	for _, number := range slices.Sorted(maps.Keys(n.blocks)) {
		if b := n.blocks[number]; number >= u.First && b.better(best) {
			best = b
		}
	}
	if u.Merged || best.full() {
		return best, nil
	}
	if n.Batch == nil || *n.Batch == 0 {
		if best == nil {
			return n.oneByOne(ctx)
		}
		return best, nil
	}
	for round := 1; ; round++ {
		for _, number := range counted {
			b, err := n.numbered(ctx, number)
			switch {
			case err != nil:
				return nil, err
			case b != nil && b.header.UncleHash == types.EmptyUncleHash:
				n.untrue(fmt.Sprintf("it counts uncles in block %d, whose header commits to none", number))
			case b != nil && b.better(best):
				best = b
			}
			if best != nil {
				return best, nil // counted begins with those that have two
			}
		}
		if best != nil || round == rounds || u.Samples > int(u.Last-u.First) { // all there are
			return best, nil
		}
		var err error
		if counted, err = n.sample(ctx, *n.Batch, round); err != nil {
			return nil, err
		}
	}
}

// better says that a block with uncles has more of them than another, if there is one.
func (b *block) better(than *block) bool {
	return b.header.UncleHash != types.EmptyUncleHash && (than == nil || len(b.uncles) > len(than.uncles))
}

// full says that a block has as many uncles as one can have.
func (b *block) full() bool { return b != nil && len(b.uncles) == upstream.MaxUncles }

// oneByOne samples without batches, and by whole blocks: one call in place of two.
func (n *node) oneByOne(ctx context.Context) (*block, error) {
	for _, number := range n.spread(singles, 0) {
		b, err := n.numbered(ctx, number)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		n.Uncles.Samples++
		if b.header.UncleHash != types.EmptyUncleHash {
			n.Uncles.Found++
			return b, nil
		}
	}
	return nil, nil
}

// ask calls one of the methods for both uncles that a block can have, and verifies the
// answers against the block's header.
func (n *node) ask(ctx context.Context, method, name string, b *block) Method {
	var list []*types.Header
	for i := range upstream.MaxUncles {
		var raw json.RawMessage
		err := n.call(ctx, &raw, method, name, hexutil.Uint(i))
		switch {
		case absent(err):
			return Absent
		case errors.Is(err, upstream.ErrPruned):
			n.unknown("uncles", err)
			return Withheld
		case err != nil && !errors.Is(err, upstream.ErrNoBlock):
			n.unknown("uncles", fmt.Errorf("%s: %w", method, err))
			return Failed
		}
		if isNull(raw) {
			break
		}
		uncle := new(types.Header)
		if err := json.Unmarshal(raw, uncle); err != nil {
			n.unknown("uncles", fmt.Errorf("uncle %d of block %v cannot be read: %s", i, b.header.Number, printable(n.scrub.Text(err.Error()))))
			return Failed
		}
		list = append(list, uncle)
	}
	switch err := upstream.VerifyUncles(list, b.header.UncleHash, len(b.uncles)); {
	case errors.Is(err, upstream.ErrPruned):
		n.unknown("uncles", fmt.Errorf("%s of block %v: %w", method, b.header.Number, err))
		return Withheld
	case err != nil:
		n.untrue(fmt.Sprintf("%s of block %v: %v", method, b.header.Number, err))
		return False
	case len(list) == 0:
		return Answered
	default:
		return Verified
	}
}
