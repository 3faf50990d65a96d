package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// block is one that a node has shown.
type block struct {
	header       *types.Header
	hash         common.Hash // as the node says
	transactions int         // how many it lists
	uncles       []common.Hash
}

// numbered asks for a block by its number, once. It is nil when the node has none.
func (n *node) numbered(ctx context.Context, number uint64) (*block, error) {
	if b := n.blocks[number]; b != nil {
		return b, nil
	}
	b, err := n.block(ctx, schema.Number(number))
	if b != nil {
		n.blocks[number] = b
	}
	return b, err
}

// block asks for a block, nil when the node has none, and verifies its header. What is
// untrue of it goes into the Report, and the block is returned all the same: it is what
// the node shows.
func (n *node) block(ctx context.Context, s schema.Selector) (*block, error) {
	method := "eth_getBlockByNumber"
	if s.Kind() == schema.ByHash {
		method = "eth_getBlockByHash"
	}
	var raw json.RawMessage
	if err := n.call(ctx, &raw, method, s.String(), false); err != nil {
		if errors.Is(err, upstream.ErrNoBlock) {
			err = nil
		}
		return nil, err
	}
	if isNull(raw) {
		return nil, nil
	}
	var said struct {
		Hash         *common.Hash  `json:"hash"`
		Transactions []common.Hash `json:"transactions"`
		Uncles       []common.Hash `json:"uncles"`
	}
	header := new(types.Header)
	err := errors.Join(json.Unmarshal(raw, header), json.Unmarshal(raw, &said))
	if err == nil && said.Hash == nil {
		err = errors.New("it has no hash")
	}
	if err != nil {
		return nil, fmt.Errorf("block %v %w: cannot be read: %s", s, upstream.ErrFailed, printable(n.scrub.Text(err.Error())))
	}
	switch err := upstream.VerifyHeader(header, *said.Hash, s, raw); {
	case errors.Is(err, upstream.ErrUntrue) && !header.Number.IsUint64():
		return nil, err // no number to go on with
	case errors.Is(err, upstream.ErrUntrue):
		n.untrue(fmt.Sprintf("asked for block %v: %v", s, err))
	case err != nil:
		n.Unknown["verification"] = printable(err.Error())
	}
	return &block{header: header, hash: *said.Hash, transactions: len(said.Transactions), uncles: said.Uncles}, nil
}

// merged says that a block is from after the merge, when difficulty became zero
// (EIP-3675). It has no uncles, by the rules of the protocol.
func (b *block) merged() bool { return b.header.Difficulty.Sign() == 0 }

// body is what a block object says of the block's body.
type body uint8

const (
	unclear body = iota // it is empty, so that nothing shows whether it is there
	held
	dropped // the header commits to what the object does not list
)

func (b *block) body() body {
	transactions, uncles := b.header.TxHash != types.EmptyTxsHash, b.header.UncleHash != types.EmptyUncleHash
	switch {
	case transactions && b.transactions == 0, uncles && len(b.uncles) == 0:
		return dropped
	case transactions || uncles:
		return held
	default:
		return unclear
	}
}
