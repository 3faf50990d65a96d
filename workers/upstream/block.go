package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/ommer/ommer/schema"
)

// MaxUncles is how many uncles a block can have by the rules of the protocol:
// maxUncles of go-ethereum's consensus/ethash/consensus.go.
const MaxUncles = 2

// Block is a block as far as uncles are concerned. It is verified, see the package
// comment, and must not be changed.
type Block struct {
	// Header is the block's own. It is nil for the pending block, which has no
	// hash yet, and in blocks that are not from a node but from an archive.
	Header *types.Header
	// Uncles are the block's uncles in their order, at most MaxUncles.
	Uncles []*types.Header
	// Final says that the block was at or below the last finalized one of the node
	// that it came from, so that its number will never name another.
	Final bool
}

// callsEach is how many calls a block takes.
const callsEach = 1 + MaxUncles

// blocks asks the node for blocks: in one round trip, if they are by number or hash. One by
// tag is alone. There is an outcome for each.
func (n *node) blocks(ctx context.Context, sels []schema.Selector) []outcome {
	finalized, final := n.Finalized() // before asking: the answers are at least as new
	outcomes := make([]outcome, len(sels))
	if sels[0].Kind() == schema.ByTag {
		outcomes[0].block, outcomes[0].found, outcomes[0].err = n.taggedBlock(ctx, sels[0])
	} else {
		n.namedBlocks(ctx, sels, outcomes)
	}
	for i := range outcomes {
		o := &outcomes[i]
		o.node = n
		switch {
		case errors.Is(o.err, errNoBlock):
			o.block, o.found, o.err = Block{}, false, nil
		case o.err == nil:
			o.block.Final = o.found && final && o.block.Header != nil && o.block.Header.Number.Uint64() <= finalized
		}
	}
	return outcomes
}

// namedBlocks asks for blocks by number or hash, and for their uncles with them. When that
// is too much for the node it is asked for halves, and in the end for one call at a time.
func (n *node) namedBlocks(ctx context.Context, sels []schema.Selector, outcomes []outcome) {
	raws, batch := make([]json.RawMessage, callsEach*len(sels)), make([]rpc.BatchElem, 0, callsEach*len(sels))
	for i, s := range sels {
		raws := raws[i*callsEach:]
		blockMethod, uncleMethod := "eth_getBlockByNumber", schema.UncleByNumber.String()
		if s.Kind() == schema.ByHash {
			blockMethod, uncleMethod = "eth_getBlockByHash", schema.UncleByHash.String()
		}
		batch = append(batch, rpc.BatchElem{Method: blockMethod, Args: []any{s.String(), false}, Result: &raws[0]})
		batch = appendUncles(batch, uncleMethod, s.String(), raws[1:callsEach])
	}
	err := n.callAsFits(ctx, batch)
	status, _ := errors.AsType[httpStatus](err)
	if len(sels) > 1 && (status.vague() || n.batchError(err, batch) != nil) {
		n.halves(ctx, sels, outcomes, err)
		return
	}
	for i, s := range sels {
		o := &outcomes[i]
		if o.err = err; err == nil {
			at, end := i*callsEach, (i+1)*callsEach
			o.block, o.err = n.readNamed(ctx, s, raws[at:end], batch[at:end])
			o.found = o.err == nil
		}
	}
}

// halves asks for the blocks of a batch that was refused in two. When half as many are
// refused as well, down to a single one, the batch was not the reason.
func (n *node) halves(ctx context.Context, sels []schema.Selector, outcomes []outcome, refusal error) {
	half := len(sels) / 2
	n.namedBlocks(ctx, sels[:half], outcomes[:half])
	if _, again := errors.AsType[httpStatus](outcomes[0].err); again {
		for i := range outcomes[half:] {
			outcomes[half+i].err = refusal
		}
		return
	}
	n.fewer(half)
	n.namedBlocks(ctx, sels[half:], outcomes[half:])
}

// readNamed reads a block and its uncles.
func (n *node) readNamed(ctx context.Context, s schema.Selector, raws []json.RawMessage, batch []rpc.BatchElem) (Block, error) {
	header, said, err := n.readBlock(batch[0], raws[0], s)
	if errors.Is(err, errNoBlock) && slices.ContainsFunc(raws[1:], func(raw json.RawMessage) bool { return raw != nil && !isNull(raw) }) {
		return Block{}, fmt.Errorf("%w: there is no such block, and it has an uncle", ErrFailed) // or it has just come
	}
	if err != nil {
		return Block{}, err
	}
	list, err := n.readUncles(header.UncleHash, said, raws[1:], batch[1:])
	if err != nil && s.Kind() == schema.ByNumber {
		// The head may have moved between the parts of the batch, so that they are
		// of two blocks. By the hash they cannot be.
		list, err = n.unclesOf(ctx, header, said)
	}
	if err != nil {
		return Block{}, err
	}
	return Block{Header: header, Uncles: list}, nil
}

// taggedBlock asks for a block by tag, and then by its hash for the uncles that it
// has, if any. On a chain that has merged it has none, and one call is all.
func (n *node) taggedBlock(ctx context.Context, s schema.Selector) (Block, bool, error) {
	var raw json.RawMessage
	batch := []rpc.BatchElem{{Method: "eth_getBlockByNumber", Args: []any{s.String(), false}, Result: &raw}}
	if err := n.callAsFits(ctx, batch); err != nil {
		return Block{}, false, err
	}
	if s.Tag() == schema.Pending {
		return n.pendingBlock(ctx, batch[0], raw)
	}
	header, said, err := n.readBlock(batch[0], raw, s)
	if err != nil {
		return Block{}, false, err
	}
	list, err := n.unclesOf(ctx, header, said)
	if err != nil {
		return Block{}, false, err
	}
	return Block{Header: header, Uncles: list}, true, nil
}

// pendingBlock reads a pending block. Nodes null its hash, nonce and miner, so that
// only its uncles can be verified.
func (n *node) pendingBlock(ctx context.Context, elem rpc.BatchElem, raw json.RawMessage) (Block, bool, error) {
	if err := n.present(elem, raw); err != nil {
		return Block{}, false, err
	}
	var said blockMembers
	if err := json.Unmarshal(raw, &said); err != nil {
		return Block{}, false, fmt.Errorf("%w: the block cannot be read: %s", ErrFailed, n.scrub.text(err.Error()))
	}
	if said.UncleHash == nil {
		return Block{}, false, fmt.Errorf("%w: the pending block has no sha3Uncles", ErrFailed)
	}
	list, err := n.unclesNamed(ctx, schema.UncleByNumber.String(), schema.Pending.String(), *said.UncleHash, said)
	if err != nil {
		return Block{}, false, err
	}
	return Block{Uncles: list}, true, nil
}

// unclesOf asks for the uncles of a verified header by the block's hash.
func (n *node) unclesOf(ctx context.Context, header *types.Header, said blockMembers) ([]*types.Header, error) {
	return n.unclesNamed(ctx, schema.UncleByHash.String(), header.Hash().Hex(), header.UncleHash, said)
}

func (n *node) unclesNamed(ctx context.Context, method, block string, commitment common.Hash, said blockMembers) ([]*types.Header, error) {
	if commitment == types.EmptyUncleHash {
		return nil, nil
	}
	uncles := make([]json.RawMessage, MaxUncles)
	batch := appendUncles(nil, method, block, uncles)
	if err := n.callAsFits(ctx, batch); err != nil {
		return nil, err
	}
	return n.readUncles(commitment, said, uncles, batch)
}

func appendUncles(batch []rpc.BatchElem, method, block string, uncles []json.RawMessage) []rpc.BatchElem {
	for i := range uncles {
		batch = append(batch, rpc.BatchElem{Method: method, Args: []any{block, hexutil.Uint(i)}, Result: &uncles[i]})
	}
	return batch
}

// blockMembers are the members of a block object beyond the header's that count.
type blockMembers struct {
	Hash      *common.Hash  `json:"hash"`
	UncleHash *common.Hash  `json:"sha3Uncles"`
	Uncles    []common.Hash `json:"uncles"`
}

// present returns why there is no block in an element of a batch, if there is none.
func (n *node) present(elem rpc.BatchElem, raw json.RawMessage) error {
	switch {
	case elem.Error != nil:
		return n.scrub.callError(elem.Error)
	case isNull(raw):
		return errNoBlock
	default:
		return nil
	}
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// readBlock reads the block object of a batch and verifies it against the question
// and against itself.
func (n *node) readBlock(elem rpc.BatchElem, raw json.RawMessage, s schema.Selector) (*types.Header, blockMembers, error) {
	var said blockMembers
	if err := n.present(elem, raw); err != nil {
		return nil, said, err
	}
	header := new(types.Header)
	small := withoutTransactions(raw)
	err := errors.Join(json.Unmarshal(small, header), json.Unmarshal(small, &said))
	if err != nil && len(small) < len(raw) {
		err = errors.Join(json.Unmarshal(raw, header), json.Unmarshal(raw, &said))
	}
	if err != nil {
		return nil, said, fmt.Errorf("%w: the block cannot be read: %s", ErrFailed, n.scrub.text(err.Error()))
	}
	if said.Hash == nil {
		return nil, said, fmt.Errorf("%w: the block has no hash", ErrFailed)
	}
	if err := verifyHeader(header, *said.Hash, s, raw, n.believe); err != nil {
		return nil, said, err
	}
	return header, said, nil
}

// withoutTransactions returns a block object without the hashes of its transactions,
// which are most of it, so that they need not be parsed. It looks for the member only
// as nodes write it. Where that finds something else, the rest is no JSON or does not
// hash to what it should, so nothing false comes of it.
func withoutTransactions(object []byte) []byte {
	before, list, found := bytes.Cut(object, []byte(`"transactions":[`))
	end := bytes.IndexByte(list, ']')
	if !found || end < 0 {
		return object
	}
	small := make([]byte, 0, len(object)-end)
	small = append(small, before...)
	small = append(small, `"transactions":[`...)
	return append(small, list[end:]...)
}

// readUncles reads the uncles of a batch and verifies them against the hash of their
// list that stands in the header.
func (n *node) readUncles(commitment common.Hash, said blockMembers, raw []json.RawMessage, batch []rpc.BatchElem) ([]*types.Header, error) {
	if commitment == types.EmptyUncleHash {
		return nil, nil
	}
	var list []*types.Header
	for i := range raw {
		if err := batch[i].Error; err != nil {
			err = n.scrub.callError(err)
			if !errors.Is(err, errNoBlock) {
				return nil, fmt.Errorf("uncle %d: %w", i, err)
			}
			raw[i] = nil
		}
		if raw[i] == nil || isNull(raw[i]) {
			break
		}
		uncle := new(types.Header)
		if err := json.Unmarshal(raw[i], uncle); err != nil {
			return nil, fmt.Errorf("%w: uncle %d cannot be read: %s", ErrFailed, i, n.scrub.text(err.Error()))
		}
		list = append(list, uncle)
	}
	return list, verifyUncles(list, commitment, len(said.Uncles), n.believe)
}
