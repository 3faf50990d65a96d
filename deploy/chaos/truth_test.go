package main

import (
	"bytes"
	"testing"

	"github.com/ommer/ommer/schema/uncle"
)

// What is compared with is computed by code of its own; here the two meet.
func TestTruthIsWhatTheServiceRenders(t *testing.T) {
	tr, err := newTruth()
	if err != nil {
		t.Fatal(err)
	}
	uncles := 0
	for _, b := range tr.blocks {
		for _, h := range b.Uncles() {
			uncles++
			want, err := render(h)
			if err != nil {
				t.Fatal(err)
			}
			if got := uncle.Append(nil, h); !bytes.Equal(got, want) {
				t.Fatalf("block %d: got %s, want %s", b.NumberU64(), got, want)
			}
		}
	}
	if uncles < 500 {
		t.Errorf("%d uncles: too few to keep the upstreams busy", uncles)
	}
}

func TestCheckSeesEveryByte(t *testing.T) {
	tr, err := newTruth()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range tr.questions[:200] {
		answer := append(append([]byte(`{"jsonrpc":"2.0","id":1000000000,"result":`), q.result...), '}')
		if err := q.check(answer); err != nil {
			t.Fatal(err)
		}
		for i := range q.result {
			other := bytes.Clone(answer)
			other[len(other)-2-i] ^= 1
			if q.check(other) == nil {
				t.Fatalf("%s passes for %s", other, answer)
			}
		}
	}
}
