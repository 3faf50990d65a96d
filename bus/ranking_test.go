package bus

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ommer/ommer/schema"
)

func named(n int) (peers []*peer) {
	for i := range n {
		name := fmt.Sprintf("worker-%d", i)
		peers = append(peers, &peer{name: name, seed: seedOf(name)})
	}
	return peers
}

// firsts is how many of the blocks belong to each worker, and first which one.
func firsts(r *ranking, blocks int) (share map[*peer]int, first []*peer) {
	share = map[*peer]int{}
	for n := range blocks {
		p, _ := r.pair(schema.Number(uint64(n)))
		share[p]++
		first = append(first, p)
	}
	return share, first
}

func TestRankingShares(t *testing.T) {
	const blocks = 200_000
	for _, n := range []int{1, 2, 3, 4, 16, 64} {
		peers := named(n)
		share, _ := firsts(newRanking(peers, nil), blocks)
		for _, p := range peers {
			if got, fair := float64(share[p]), float64(blocks)/float64(n); got < 0.6*fair || got > 1.4*fair {
				t.Errorf("%s of %d has %v blocks, fair are %v", p.name, n, got, fair)
			}
		}
	}
}

// Who comes takes its share from all, who leaves leaves its own to all; nothing else
// moves.
func TestRankingMovesOnlyAShare(t *testing.T) {
	const blocks = 100_000
	peers := named(5)
	_, before := firsts(newRanking(peers[:4], nil), blocks)
	_, after := firsts(newRanking(peers, nil), blocks)
	moved := 0
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		if moved++; after[i] != peers[4] {
			t.Fatalf("block %d went from %s to %s", i, before[i].name, after[i].name)
		}
	}
	if moved < blocks/5*6/10 || moved > blocks/5*14/10 {
		t.Errorf("%d of %d moved", moved, blocks)
	}
}

// The second of a block's two is the one that is its first when the first has gone.
func TestRankingSecond(t *testing.T) {
	peers := named(4)
	all := newRanking(peers, nil)
	for i := range peers {
		rest := newRanking(slices.Delete(slices.Clone(peers), i, i+1), nil)
		for n := range uint64(5000) {
			b := schema.Number(n)
			first, second := all.pair(b)
			if first == second {
				t.Fatalf("block %d has one worker", n)
			}
			if first != peers[i] {
				continue
			}
			if got, _ := rest.pair(b); got != second {
				t.Fatalf("block %d would go to %s, its second is %s", n, got.name, second.name)
			}
		}
	}
}

func TestRankingPick(t *testing.T) {
	peers := named(2)
	r := newRanking(peers, nil)
	b := schema.Number(1)
	first, second := r.pair(b)
	want := func(what string, not, want *peer, now int64) {
		t.Helper()
		if got := r.pick(b, not, now); got != want {
			t.Errorf("%s: got %+v", what, got)
		}
	}
	want("both well", nil, first, 0)
	want("the first has refused", first, second, 0)
	first.asked.Store(slack) // as much again
	want("a little more to do", nil, first, 0)
	first.asked.Store(2 * slack)
	want("much more to do", nil, second, 0)
	second.others.Store(slack)
	want("both busy", nil, first, 0)
	first.asked.Store(0)
	first.took.Store(int64(quick))
	want("no slower than it matters", nil, first, 0)
	first.took.Store(5 * int64(quick))
	want("slow", nil, second, 0)
	second.shunned.Store(100)
	want("slow, and there is no other", nil, first, 99)
	want("and then there is", nil, second, 100)
	want("none", first, nil, 99)
	if newRanking(nil, nil).pick(b, nil, 0) != nil {
		t.Error("somebody of nobody")
	}
	one := newRanking(peers[:1], nil)
	if one.pick(b, nil, 0) != peers[0] || one.pick(b, peers[0], 0) != nil {
		t.Error("the only one")
	}
}

// Slow once does not mean slow for ever, and what is forgotten is so at its half-life.
func TestPeerForgets(t *testing.T) {
	p := named(1)[0]
	for range 100 {
		p.sample(1e9)
	}
	if took := p.took.Load(); took < 9e8 || took > 1e9 {
		t.Fatalf("mean of the same is %d", took)
	}
	p.decay(int64(halfLife))
	if took := p.took.Load(); took < 4e8 || took > 6e8 {
		t.Errorf("after its half-life %d are left", took)
	}
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{1, 4, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRanking(named(n), nil)
			for i := range b.N {
				r.pick(schema.Number(uint64(i)), nil, 0)
			}
		})
	}
}

func BenchmarkRanking(b *testing.B) {
	peers := named(64)
	for range b.N {
		newRanking(peers, nil)
	}
}
