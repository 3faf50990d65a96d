//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// response is a JSON-RPC response.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("error %d, %s %s", e.Code, e.Message, e.Data) }

// result returns the result of a response to the call with that id.
func result(raw []byte, id int) (json.RawMessage, error) {
	var r response
	if err := strict(raw, &r); err != nil {
		return nil, err
	}
	return r.to(id)
}

func (r *response) to(id int) (json.RawMessage, error) {
	switch {
	case r.Version != "2.0" || string(r.ID) != fmt.Sprint(id):
		return nil, fmt.Errorf("a response with version %q and id %s, want 2.0 and %d", r.Version, r.ID, id)
	case r.Error != nil:
		return nil, r.Error
	case r.Result == nil:
		return nil, errors.New("neither result nor error")
	default:
		return r.Result, nil
	}
}

// results returns the results of a response to a batch of n calls, whose ids count
// from 0.
func results(raw []byte, n int) ([]json.RawMessage, error) {
	var batch []response
	if err := strict(raw, &batch); err != nil {
		return nil, err
	}
	if len(batch) != n {
		return nil, fmt.Errorf("%d responses to a batch of %d", len(batch), n)
	}
	out := make([]json.RawMessage, n)
	for i := range batch {
		var err error
		if out[i], err = batch[i].to(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// strict decodes a JSON text that has no members but those of v.
func strict(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w in %.300s", err, raw)
	}
	if d.More() {
		return fmt.Errorf("more than one JSON value: %.300s", raw)
	}
	return nil
}

// object is an uncle as it is answered, all the members that it may have.
type object struct {
	BaseFeePerGas    *hexutil.Big     `json:"baseFeePerGas"`
	Difficulty       *hexutil.Big     `json:"difficulty"`
	ExtraData        hexutil.Bytes    `json:"extraData"`
	GasLimit         hexutil.Uint64   `json:"gasLimit"`
	GasUsed          hexutil.Uint64   `json:"gasUsed"`
	Hash             common.Hash      `json:"hash"`
	LogsBloom        types.Bloom      `json:"logsBloom"`
	Miner            common.Address   `json:"miner"`
	MixHash          common.Hash      `json:"mixHash"`
	Nonce            types.BlockNonce `json:"nonce"`
	Number           *hexutil.Big     `json:"number"`
	ParentHash       common.Hash      `json:"parentHash"`
	ReceiptsRoot     common.Hash      `json:"receiptsRoot"`
	Sha3Uncles       common.Hash      `json:"sha3Uncles"`
	Size             hexutil.Uint64   `json:"size"`
	StateRoot        common.Hash      `json:"stateRoot"`
	Timestamp        hexutil.Uint64   `json:"timestamp"`
	TotalDifficulty  json.RawMessage  `json:"totalDifficulty"`
	TransactionsRoot common.Hash      `json:"transactionsRoot"`
	Uncles           []common.Hash    `json:"uncles"`
}

// header rebuilds the header that an answer is about, and holds what the answer
// says of it to it: its hash and its size. A member that is missing, or one too
// many, is an error too.
func header(result []byte) (*types.Header, error) {
	var o object
	if err := strict(result, &o); err != nil {
		return nil, err
	}
	h := &types.Header{
		ParentHash:  o.ParentHash,
		UncleHash:   o.Sha3Uncles,
		Coinbase:    o.Miner,
		Root:        o.StateRoot,
		TxHash:      o.TransactionsRoot,
		ReceiptHash: o.ReceiptsRoot,
		Bloom:       o.LogsBloom,
		Difficulty:  o.Difficulty.ToInt(),
		Number:      o.Number.ToInt(),
		GasLimit:    uint64(o.GasLimit),
		GasUsed:     uint64(o.GasUsed),
		Time:        uint64(o.Timestamp),
		Extra:       o.ExtraData,
		MixDigest:   o.MixHash,
		Nonce:       o.Nonce,
		BaseFee:     o.BaseFeePerGas.ToInt(),
	}
	switch {
	case h.Hash() != o.Hash:
		return nil, fmt.Errorf("the fields hash to %v, hash is %v", h.Hash(), o.Hash)
	case types.NewBlockWithHeader(h).Size() != uint64(o.Size):
		return nil, fmt.Errorf("size is %d, want %d", o.Size, types.NewBlockWithHeader(h).Size())
	case string(o.TotalDifficulty) != "null":
		return nil, fmt.Errorf("totalDifficulty is %s, want null", o.TotalDifficulty)
	case o.Uncles == nil || len(o.Uncles) > 0:
		return nil, fmt.Errorf("uncles is %v, want []", o.Uncles)
	}
	return h, nil
}

// check holds a result to what is true.
func (q question) check(result []byte) (*types.Header, error) {
	want, some := q.want()
	if !some {
		if string(result) != "null" {
			return nil, fmt.Errorf("%v: got %.200s, want null", q, result)
		}
		return nil, nil //nolint:nilnil // there is no such uncle
	}
	h, err := header(result)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", q, err)
	}
	if got := h.Hash(); got != want {
		return nil, fmt.Errorf("%v: got uncle %v, want %v", q, got, want)
	}
	return h, nil
}
