package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/ommer/ommer/schema"
)

// MaxRow is how many blocks Row may be asked for. Nodes answer at most 1000 calls at a
// time, and 25 MB.
const MaxRow = 100

// Row returns the count blocks from number first on, for whoever reads a chain from
// one end to the other. It takes one round trip, and a second one when some of them
// have uncles. Each block is verified by itself; that they follow one another is for
// the caller to check.
//
// The nodes are asked one after the other until one has all of the blocks.
func (s *Set) Row(ctx context.Context, first uint64, count int) ([]Block, error) {
	var failures asked
	for _, n := range s.order(schema.Number(first+uint64(count)-1), time.Now()) {
		blocks, err := n.row(ctx, first, count)
		if err == nil {
			return blocks, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", n.name, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failures
}

func (n *node) row(ctx context.Context, first uint64, count int) ([]Block, error) {
	if count < 1 || count > MaxRow {
		return nil, fmt.Errorf("%w: a row of %d blocks, want 1 to %d", ErrFailed, count, MaxRow)
	}
	if left := n.shut.left(time.Now()); left > 0 && !pause(ctx, left) {
		return nil, fmt.Errorf("%w: it asked to be left alone", ErrOverloaded)
	}
	blocks, err := n.readRow(ctx, first, count)
	if err == nil {
		n.succeeded()
	} else if !errors.Is(ctx.Err(), context.Canceled) {
		n.failed(err)
	}
	return blocks, err
}

func (n *node) readRow(ctx context.Context, first uint64, count int) ([]Block, error) {
	raws, batch := make([]json.RawMessage, count), make([]rpc.BatchElem, 0, count)
	for i := range raws {
		batch = append(batch, rpc.BatchElem{
			Method: "eth_getBlockByNumber", Args: []any{schema.Number(first + uint64(i)).String(), false}, Result: &raws[i],
		})
	}
	if err := n.call(ctx, batch); err != nil {
		return nil, err
	}
	blocks, said := make([]Block, count), make([]blockMembers, count)
	var with []int // the blocks that have uncles
	for i := range blocks {
		var err error
		s := schema.Number(first + uint64(i))
		blocks[i].Header, said[i], err = n.readBlock(batch[i], raws[i], s)
		if errors.Is(err, errNoBlock) {
			err = fmt.Errorf("%w: it does not have it", ErrPruned)
		}
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", s.Number(), err)
		}
		if blocks[i].Header.UncleHash != types.EmptyUncleHash {
			with = append(with, i)
		}
	}
	if len(with) == 0 {
		return blocks, nil
	}
	uncles := make([]json.RawMessage, len(with)*MaxUncles)
	batch = make([]rpc.BatchElem, 0, len(uncles))
	for k, i := range with {
		batch = appendUncles(batch, schema.UncleByHash.String(), blocks[i].Header.Hash().Hex(), uncles[k*MaxUncles:(k+1)*MaxUncles])
	}
	if err := n.call(ctx, batch); err != nil {
		return nil, err
	}
	for k, i := range with {
		at, end := k*MaxUncles, (k+1)*MaxUncles
		var err error
		blocks[i].Uncles, err = n.readUncles(blocks[i].Header.UncleHash, said[i], uncles[at:end], batch[at:end])
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", first+uint64(i), err)
		}
	}
	return blocks, nil
}
