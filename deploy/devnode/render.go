package devnode

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// answers are the results about one block, rendered.
type answers struct {
	block  json.RawMessage
	uncles []json.RawMessage
}

// size is about how much memory the answers take.
func (a *answers) size() int64 {
	n := len(a.block)
	for _, u := range a.uncles {
		n += len(u)
	}
	return int64(n) + 256
}

// render renders b with the hashes of its transactions, and its uncles.
func render(b *types.Block) (*answers, error) {
	fields, err := blockFields(b)
	if err != nil {
		return nil, err
	}
	txs := make([]common.Hash, len(b.Transactions()))
	for i, tx := range b.Transactions() {
		txs[i] = tx.Hash()
	}
	fields["transactions"] = txs
	if w := b.Withdrawals(); w != nil {
		fields["withdrawals"] = w
	}
	a := &answers{uncles: make([]json.RawMessage, len(b.Uncles()))}
	if a.block, err = json.Marshal(fields); err != nil {
		return nil, err
	}
	for i, u := range b.Uncles() {
		// As geth does: an uncle is a block of which only the header is known.
		fields, err := blockFields(types.NewBlockWithHeader(u))
		if err != nil {
			return nil, err
		}
		if a.uncles[i], err = json.Marshal(fields); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// blockFields returns the members of the result that a block and an uncle have in
// common, the set of geth's RPCMarshalBlock (internal/ethapi/api.go): those of the
// header, of which absent ones are left out, the size, and the hashes of uncles.
// Current geth sends no totalDifficulty.
func blockFields(b *types.Block) (map[string]any, error) {
	head, err := json.Marshal(b.Header())
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(head, &members); err != nil {
		return nil, err
	}
	fields := make(map[string]any, len(members)+4)
	for name, value := range members {
		if string(value) != "null" {
			fields[name] = value
		}
	}
	uncles := make([]common.Hash, len(b.Uncles()))
	for i, u := range b.Uncles() {
		uncles[i] = u.Hash()
	}
	fields["uncles"] = uncles
	fields["size"] = hexutil.Uint64(b.Size())
	return fields, nil
}
