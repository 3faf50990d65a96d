package build

import (
	"bytes"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

func TestNode(t *testing.T) {
	chain := generated()
	node := upstreamtest.Start(t, chain)
	node.SetFinalized(300)
	want := straight(t, upstreamtest.ChainID, chain)
	for _, url := range []string{node.URL, node.WSURL} {
		if got := build(t, Config{From: url}); !bytes.Equal(got, want) {
			t.Errorf("the file has %d bytes, want %d; or others", len(got), len(want))
		}
	}
	first, last := uint64(11), uint64(99)
	if !bytes.Equal(build(t, Config{From: node.URL, First: &first, Last: &last}), straight(t, upstreamtest.ChainID, chain[11:100])) {
		t.Error("another file of blocks 11 to 99")
	}
	node.SetFinalized(-1)
	fails(t, Config{From: node.URL}, "--last")
	if !bytes.Equal(build(t, Config{From: node.URL, Last: &last}), straight(t, upstreamtest.ChainID, chain[:100])) {
		t.Error("another file of blocks 0 to 99")
	}
	node.SetFinalized(50)
	fails(t, Config{From: node.URL, Last: &last}, "not final")
}

// TestLyingNode has a node that lies, in one way at a time, about a block in the
// middle.
func TestLyingNode(t *testing.T) {
	chain := generated()
	other := upstreamtest.Generate(300, 149, "another")
	for _, c := range []struct {
		name    string
		falsify func(method, block string, index int, object map[string]any) (map[string]any, error)
		want    string
	}{
		{"another header", func(_, block string, _ int, o map[string]any) (map[string]any, error) {
			if block == "0x96" {
				o["gasUsed"] = "0x77"
			}
			return o, nil
		}, "block 150: untrue answer"},
		{"another uncle", func(_, _ string, index int, o map[string]any) (map[string]any, error) {
			if index == 1 && o != nil {
				o["nonce"] = "0x1111111111111111"
			}
			return o, nil
		}, "untrue answer"},
		{"no uncles", func(_, _ string, index int, o map[string]any) (map[string]any, error) {
			if index >= 0 {
				return nil, nil
			}
			return o, nil
		}, "history pruned"},
		{"no block", func(_, block string, _ int, o map[string]any) (map[string]any, error) {
			if block == "0x96" {
				return nil, nil
			}
			return o, nil
		}, "block 150: history pruned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := upstreamtest.Start(t, chain)
			node.SetFinalized(300)
			node.Falsify(c.falsify)
			fails(t, Config{From: node.URL}, c.want)
		})
	}
	t.Run("blocks of two chains", func(t *testing.T) { // each true by itself
		mixed := slices.Concat(chain[:160], other[160:])
		node := upstreamtest.Start(t, mixed)
		node.SetFinalized(300)
		fails(t, Config{From: node.URL}, "the parent of block 160")
	})
	t.Run("another network's genesis", func(t *testing.T) {
		node := upstreamtest.Start(t, chain)
		node.SetFinalized(300)
		node.SetChainID(1)
		fails(t, Config{From: node.URL}, "chain 1 begins with")
	})
}

// TestNodeThatComesBack has a node that is out of reach for a while.
func TestNodeThatComesBack(t *testing.T) {
	node := upstreamtest.Start(t, generated()[:40])
	node.SetFinalized(39)
	var failed atomic.Int32
	node.Handle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if n := failed.Add(1); n > 4 && n < 7 {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
	if !bytes.Equal(build(t, Config{From: node.URL}), straight(t, upstreamtest.ChainID, generated()[:40])) {
		t.Error("another file")
	}
	if failed.Load() < 7 {
		t.Errorf("only %d requests: the node was never away", failed.Load())
	}
}
