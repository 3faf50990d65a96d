package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/deploy/load"
	"github.com/ommer/ommer/deploy/testchain"
)

// The methods of the service.
const (
	byNumber = "eth_getUncleByBlockNumberAndIndex"
	byHash   = "eth_getUncleByBlockHashAndIndex"
)

// shape is the chain: long enough that the workers, who are given little room for
// what they know, ask their upstreams all the time.
var shape = testchain.Shape{Length: 600, London: 100, Merge: 580}

// truth is a chain, and what has to be answered to questions about it.
type truth struct {
	blocks    []*types.Block
	questions []question
}

// question is a lookup and the bytes of its result, null among them.
type question struct {
	load.Question
	result []byte
}

// newTruth generates the chain, and computes every result from it: every uncle by
// number and by hash, the place behind the last one of each block, and blocks that
// there are not.
func newTruth() (*truth, error) {
	blocks, err := shape.Blocks()
	if err != nil {
		return nil, err
	}
	t := &truth{blocks: blocks}
	for _, b := range blocks {
		for i, uncle := range b.Uncles() {
			result, err := render(uncle)
			if err != nil {
				return nil, fmt.Errorf("uncle %d of block %d: %w", i, b.NumberU64(), err)
			}
			t.ask(b.NumberU64(), b.Hash(), i, uncle.Hash().Hex(), result)
		}
		t.ask(b.NumberU64(), b.Hash(), len(b.Uncles()), "", nullResult)
	}
	for i := range 20 {
		head := blocks[len(blocks)-1]
		t.ask(head.NumberU64()+1+uint64(i), common.BytesToHash(fmt.Appendf(nil, "no block %d", i)), 0, "", nullResult)
	}
	return t, nil
}

var nullResult = []byte("null")

// ask adds a question by number and by hash.
func (t *truth) ask(number uint64, hash common.Hash, index int, uncle string, result []byte) {
	for _, q := range []load.Question{
		{Method: byNumber, Params: fmt.Sprintf(`["%#x","%#x"]`, number, index), Hash: uncle},
		{Method: byHash, Params: fmt.Sprintf(`[%q,"%#x"]`, hash.Hex(), index), Hash: uncle},
	} {
		t.questions = append(t.questions, question{q, result})
	}
}

// asked are the questions as a Dialer takes them.
func (t *truth) asked() []load.Question {
	qs := make([]load.Question, len(t.questions))
	for i, q := range t.questions {
		qs[i] = q.Question
	}
	return qs
}

// write writes the chain as `geth export` does.
func (t *truth) write(file string) error {
	var b bytes.Buffer
	if err := testchain.Export(&b, t.blocks); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}

// members are those of the block object that are in go-ethereum's JSON of a header.
var members = []string{
	"number", "difficulty", "gasLimit", "gasUsed", "timestamp", "hash", "parentHash", "sha3Uncles", "transactionsRoot",
	"stateRoot", "receiptsRoot", "mixHash", "nonce", "miner", "logsBloom", "extraData",
}

// render is the result for an uncle, by go-ethereum's JSON and by no code that renders
// answers: encoding/json sorts the members as the service has to.
func render(h *types.Header) ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	object := map[string]any{
		"size": hexutil.Uint64(types.NewBlockWithHeader(h).Size()), "totalDifficulty": nil, "uncles": []string{},
	}
	for _, name := range members {
		object[name] = all[name]
	}
	if h.BaseFee != nil {
		object["baseFeePerGas"] = all["baseFeePerGas"]
	}
	return json.Marshal(object)
}

// check compares every byte of an answer whose id has been looked at.
func (q *question) check(answer []byte) error {
	result, whole := bytes.CutSuffix(bytes.TrimSpace(answer), []byte("}"))
	if !whole || !bytes.HasSuffix(result, append([]byte(`,"result":`), q.result...)) {
		return fmt.Errorf("to %s %s: %.400s, want %.400s", q.Method, q.Params, answer, q.result)
	}
	return nil
}
