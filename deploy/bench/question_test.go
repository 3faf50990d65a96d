package main

import (
	"encoding/json"
	"errors"
	"strings"
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
	bodies, hashes := map[string]bool{}, map[string]bool{}
	for _, q := range qs {
		if !json.Valid([]byte(q.Body)) || len(q.Hash) != 66 {
			t.Errorf("%s, %s", q.Body, q.Hash)
		}
		bodies[q.Body], hashes[q.Hash] = true, true
	}
	// Else an answer to another question could pass.
	if len(bodies) != len(qs) || len(hashes) != len(qs) {
		t.Errorf("%d questions, %d different ones, %d different answers", len(qs), len(bodies), len(hashes))
	}
}

func TestCheck(t *testing.T) {
	hash, other := "0x"+strings.Repeat("ab", 32), "0x"+strings.Repeat("cd", 32)
	q := question{Body: "?", Hash: hash}
	result := func(fields string) string { return `{"jsonrpc":"2.0","id":1,"result":{` + fields + `}}` }
	for _, tt := range []struct {
		name, answer string
		right        bool
	}{
		{"right", result(`"gasUsed":"0x0","hash":"` + hash + `","parentHash":"` + other + `"`), true},
		{"another uncle", result(`"hash":"` + other + `"`), false},
		{"another uncle whose parent it is", result(`"hash":"` + other + `","parentHash":"` + hash + `"`), false},
		{"the hash of the parent alone", result(`"parentHash":"` + hash + `"`), false},
		{"one digit off", result(`"hash":"` + hash[:65] + `c"`), false},
		{"longer", result(`"hash":"` + hash + `00"`), false},
		{"cut off", result(`"hash":"` + hash)[:90], false},
		{"null", `{"jsonrpc":"2.0","id":1,"result":null}`, false},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"request timed out"}}`, false},
		{"nothing", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := q.check([]byte(tt.answer))
			if tt.right != (err == nil) || err != nil && !errors.Is(err, errWrong) {
				t.Errorf("got %v, want right: %v", err, tt.right)
			}
		})
	}
}
