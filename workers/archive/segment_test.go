package archive

import (
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
)

// segment returns the blocks first to last of the chain that chain(last+1) makes.
func segment(tb testing.TB, first, last int) *Segment {
	tb.Helper()
	s := new(Segment)
	headers, bodies := chain(last + 1)
	for i := first; i <= last; i++ {
		var b Body
		if err := b.parse(bodies[i]); err != nil {
			tb.Fatal(err)
		}
		if err := s.Add(headers[i], headers[i].Hash(), b.UncleList); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

func TestRefusedSegments(t *testing.T) {
	other := segment(t, 5, 9)
	other.Parent[0] ^= 1
	sepolia, hoodi := segment(t, 0, 3), segment(t, 4, 9)
	sepolia.Chain, hoodi.Chain = known[1], Chain{ID: known[2].ID}
	for _, c := range []struct {
		name     string
		segments []*Segment
		want     string
	}{
		{"none", nil, "there is no block"},
		{"twice", []*Segment{segment(t, 0, 4), segment(t, 4, 9)}, "block 4 is there twice"},
		{"out of order", []*Segment{segment(t, 5, 9), segment(t, 0, 4)}, "block 0 is there twice"},
		{"another chain", []*Segment{segment(t, 0, 4), other}, "the parent of block 5"},
		{"two networks", []*Segment{sepolia, hoodi}, "chains 11155111 and 560048"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Write(t.Context(), new(memory), each(c.segments...))
			if !errors.Is(err, ErrChain) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrChain with %q", err, c.want)
			}
		})
	}
}

func TestRefusedBlocksOfASegment(t *testing.T) {
	headers, bodies := chain(6)
	var with Body // of block 2
	if err := with.parse(bodies[2]); err != nil {
		t.Fatal(err)
	}
	orphan := types.CopyHeader(headers[0])
	orphan.ParentHash[0] = 1
	for _, c := range []struct {
		name string
		h    *types.Header
		list []byte
		want string
	}{
		{"a gap", headers[3], []byte(emptyList), "block 3 behind block 1"},
		{"another parent", func() *types.Header { h := types.CopyHeader(headers[2]); h.ParentHash[0] ^= 1; return h }(), with.UncleList, "the parent of block 2"},
		{"without its uncles", headers[2], []byte(emptyList), "sha3Uncles"},
		{"with too many", headers[2], make([]byte, maxList+1), "the limit is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := segment(t, 0, 1).Add(c.h, c.h.Hash(), c.list); !errors.Is(err, ErrChain) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrChain with %q", err, c.want)
			}
		})
	}
	if err := new(Segment).Add(orphan, orphan.Hash(), nil); !errors.Is(err, ErrChain) {
		t.Errorf("a genesis block with a parent: %v", err)
	}
}
