package upstream

import (
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

func TestRow(t *testing.T) {
	chain := upstreamtest.Generate(40, 40, "row")
	node := upstreamtest.Start(t, chain)
	s := newSet(t, Config{URLs: []string{node.URL}})
	before := node.Requests.Load()
	blocks, err := s.Row(t.Context(), 3, 30)
	if err != nil {
		t.Fatal(err)
	}
	if got := node.Requests.Load() - before; got > 3 { // which chain it is, blocks, uncles
		t.Errorf("%d requests for 30 blocks", got)
	}
	for i, b := range blocks {
		want := chain[3+i]
		if b.Header.Hash() != want.Hash() || types.CalcUncleHash(b.Uncles) != want.UncleHash() || len(b.Uncles) != len(want.Uncles()) {
			t.Errorf("block %d: %v with %d uncles, want %v with %d", 3+i, b.Header.Hash(), len(b.Uncles), want.Hash(), len(want.Uncles()))
		}
	}
	if _, err := s.Row(t.Context(), 39, 3); !errors.Is(err, ErrPruned) || !strings.Contains(err.Error(), "block 41") {
		t.Errorf("beyond the head: %v", err)
	}
	if _, err := s.Row(t.Context(), 0, MaxRow+1); !errors.Is(err, ErrFailed) {
		t.Errorf("too many: %v", err)
	}
	for _, c := range []struct {
		name    string
		falsify func(method, block string, index int, object map[string]any) (map[string]any, error)
		want    error
	}{
		{"an uncle left out", func(method, _ string, index int, object map[string]any) (map[string]any, error) {
			if index == 1 {
				return nil, nil
			}
			return object, nil
		}, ErrPruned},
		{"a header altered", func(method, block string, _ int, object map[string]any) (map[string]any, error) {
			if block == "0x5" {
				object["gasUsed"] = "0x1"
			}
			return object, nil
		}, ErrUntrue},
		{"an uncle altered", func(method, _ string, index int, object map[string]any) (map[string]any, error) {
			if index == 0 && object != nil {
				object["nonce"] = "0x0000000000000001"
			}
			return object, nil
		}, ErrUntrue},
	} {
		t.Run(c.name, func(t *testing.T) {
			node.Falsify(c.falsify)
			if blocks, err := s.Row(t.Context(), 3, 10); !errors.Is(err, c.want) {
				t.Errorf("got %d blocks, %v, want %v", len(blocks), err, c.want)
			}
		})
	}
}
