//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
)

// transport is a way to reach the edges.
type transport struct {
	name    string
	callers []caller
}

// Two connections of each kind to each edge, all over TLS.
func secureTransports(f *fleet, key string) []transport {
	ways := []transport{{name: "HTTPS"}, {name: "WSS"}}
	for _, e := range f.edges {
		for range 2 {
			ways[0].callers = append(ways[0].callers, f.httpCaller(e, true, key))
			ways[1].callers = append(ways[1].callers, f.mustWS(e, true, key))
		}
	}
	return ways
}

// TestSepolia asks for every uncle of the real blocks in every way there is and
// rebuilds the header of each from what was answered.
func TestSepolia(t *testing.T) {
	path, with, without := sepolia(t)
	f, key := startFleet(t, startNode(t, "").url, size{edges: 2, workers: 3})
	t.Logf("two edges, three workers, %s", path)

	for _, way := range secureTransports(f, key) {
		for _, byHash := range []bool{false, true} {
			for _, batch := range []int{1, 100} {
				t.Run(fmt.Sprintf("uncles/%s/by hash %v/batches of %d", way.name, byHash, batch), func(t *testing.T) {
					compareUncles(t, way, with, byHash, batch)
				})
			}
			t.Run(fmt.Sprintf("nulls/%s/by hash %v", way.name, byHash), func(t *testing.T) {
				compareNulls(t, way, with, without, byHash)
			})
		}
	}
}

// compareUncles compares each uncle, and the uncles of each block with the hash
// that its header has of them.
func compareUncles(t *testing.T, way transport, with []block, byHash bool, batch int) {
	qs := unclesOf(with, byHash)
	results, err := askAll(t.Context(), way.callers, qs, batch)
	if err != nil {
		t.Fatal(err)
	}
	differences := 0
	lists := map[uint64][]*types.Header{}
	for i, q := range qs {
		h, err := q.check(results[i])
		if err != nil {
			differences++
			t.Error(err)
			continue
		}
		lists[q.block.number] = append(lists[q.block.number], h)
	}
	for _, b := range with {
		if got := types.CalcUncleHash(lists[b.number]); got != b.uncleHash {
			differences++
			t.Errorf("block %d: the uncles hash to %v, sha3Uncles is %v", b.number, got, b.uncleHash)
		}
	}
	t.Logf("compared: %d uncles, %d lists of uncles; differences: %d", len(qs), len(with), differences)
}

// compareNulls asks for what there is not: uncles beyond those of a block, and of
// blocks without any.
func compareNulls(t *testing.T, way transport, with, without []block, byHash bool) {
	var qs []question
	for i := range with {
		b := &with[i]
		qs = append(qs, question{b, len(b.uncles), byHash}, question{b, 1<<32 + i, byHash})
	}
	beyond := len(qs)
	for i := range without {
		qs = append(qs, question{&without[i], 0, byHash})
	}
	results, err := askAll(t.Context(), way.callers, qs, 100)
	if err != nil {
		t.Fatal(err)
	}
	differences := 0
	for i, q := range qs {
		if _, err := q.check(results[i]); err != nil {
			differences++
			t.Error(err)
		}
	}
	t.Logf("compared: %d indexes beyond the last uncle, %d blocks without uncles; differences: %d", beyond, len(without), differences)
}
