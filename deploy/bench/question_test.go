package main

import (
	"encoding/json"
	"testing"

	"github.com/ommer/ommer/deploy/testchain"
)

func TestQuestions(t *testing.T) {
	qs, err := questions()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := testchain.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	uncles := 0
	for _, b := range blocks {
		uncles += len(b.Uncles())
	}
	if len(qs) != uncles {
		t.Errorf("%d questions about %d uncles", len(qs), uncles)
	}
	params, hashes := map[string]bool{}, map[string]bool{}
	for _, q := range qs {
		if !json.Valid([]byte(q.Params)) || len(q.Hash) != 66 {
			t.Errorf("%s, %s", q.Params, q.Hash)
		}
		params[q.Params], hashes[q.Hash] = true, true
	}
	// Else an answer to another question could pass.
	if len(params) != len(qs) || len(hashes) != len(qs) {
		t.Errorf("%d questions, %d different ones, %d different answers", len(qs), len(params), len(hashes))
	}
}
