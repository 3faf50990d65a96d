package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ommer/ommer/deploy/testchain"
)

// question is a lookup and the hash of the uncle that answers it.
type question struct {
	Body string // the JSON-RPC request
	Hash string // 0x and 64 digits
}

// questions asks for every uncle of the generated chain, by number.
func questions() ([]question, error) {
	blocks, err := testchain.Blocks()
	if err != nil {
		return nil, err
	}
	var qs []question
	for _, b := range blocks {
		for i, u := range b.Uncles() {
			qs = append(qs, question{
				Body: fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["%#x","%#x"]}`, b.NumberU64(), i),
				Hash: u.Hash().Hex(),
			})
		}
	}
	if len(qs) == 0 {
		return nil, errors.New("the generated chain has no uncles")
	}
	return qs, nil
}

// errWrong: an answer is not the uncle that was asked for.
var errWrong = errors.New("wrong answer")

// hashMember begins the member of the uncle's own hash. The quotation mark keeps
// parentHash apart.
var hashMember = []byte(`"hash":"`)

// check compares an answer with what the chain has. It looks at the hash alone: the
// load must be cheap, and whole objects are compared by the tests.
func (q *question) check(answer []byte) error {
	i := bytes.Index(answer, hashMember)
	if i >= 0 {
		rest := answer[i+len(hashMember):]
		if n := len(q.Hash); len(rest) > n && string(rest[:n]) == q.Hash && rest[n] == '"' {
			return nil
		}
	}
	return fmt.Errorf("%w to %s: %.300s, want the uncle %s", errWrong, q.Body, answer, q.Hash)
}
