package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ommer/ommer/deploy/testchain"
)

// question is a lookup whose answer is known.
type question struct {
	block  uint64
	index  int
	hash   string // of the uncle: 0x and 64 digits
	result []byte // the whole uncle, once learned
}

// call is the question as a JSON-RPC call.
func (q *question) call(id int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"eth_getUncleByBlockNumberAndIndex","params":["%#x","%#x"]}`, id, q.block, q.index)
}

// questions asks for every uncle of the generated chain.
func questions() (qs []question, err error) {
	blocks, err := testchain.Blocks()
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		for i, u := range b.Uncles() {
			qs = append(qs, question{block: b.NumberU64(), index: i, hash: u.Hash().Hex()})
		}
	}
	if len(qs) == 0 {
		return nil, errors.New("the generated chain has no uncles")
	}
	return qs, nil
}

// errWrong: an answer is not the uncle that was asked for.
var errWrong = errors.New("wrong answer")

// learn asks every question once. An answer that has the hash which the chain has is
// kept whole, so that from then on every byte is compared.
func learn(ctx context.Context, s site, qs []question) error {
	c, err := dial(ctx, s, wireHTTP)
	if err != nil {
		return err
	}
	defer c.close()
	for i := range qs {
		q := &qs[i]
		answer, err := c.ask(ctx, q.call(i))
		if err != nil {
			return err
		}
		q.result = bytes.TrimSuffix(bytes.TrimPrefix(answer, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":`, i)), []byte("}"))
		if len(q.result) == len(answer) || !bytes.Contains(q.result, []byte(`"hash":"`+q.hash+`"`)) {
			return fmt.Errorf("%w to %s: %.300s, want the uncle %s", errWrong, q.call(i), answer, q.hash)
		}
	}
	return nil
}

// check compares every byte of an answer. An error is an answer too, but no wrong one.
func (q *question) check(id int, answer []byte) error {
	if bytes.HasPrefix(answer, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"error":`, id)) {
		return fmt.Errorf("answered with %s", answer)
	}
	if !bytes.Equal(answer, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":%s}`, id, q.result)) {
		return fmt.Errorf("%w to %s: %.300s", errWrong, q.call(id), answer)
	}
	return nil
}
