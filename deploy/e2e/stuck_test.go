//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/deploy/testchain"
)

// TestStuckAndHasty has two geths agree until the chain is reorganised, which one of them
// never hears of: it goes on telling, in good faith, of blocks that are no longer in the
// chain, and of a head that is lower. Beside the other one its word must not count; nor
// must that of a node that calls final what is not, so that it would be kept for good.
func TestStuckAndHasty(t *testing.T) {
	const shared, head = 107, 110
	shape := testchain.Shape{Length: head + 1, London: 40, Merge: neverMerged}
	genesis, err := shape.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	trunk, err := shape.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	shape.Fork, shape.Length = shared, head+3
	branch, err := shape.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	choice := func(blocks []*types.Block) forkchoice {
		return forkchoice{head: blocks[len(blocks)-1], safe: trunk[shared], finalized: trunk[shared-3]}
	}
	beyond := uint64(len(branch) + 4)
	from, to := newView(choice(trunk), trunk, shared, beyond), newView(choice(branch), branch, shared, beyond)
	for _, v := range []view{from, to} {
		delete(v.at, "finalized") // the tag is what one of them gets wrong
	}
	start := func() *geth {
		g := startGeth(t, genesis, branch[1:], trunk[shared+1:])
		g.choose(t, choice(trunk))
		return g
	}
	alive, stuck := start(), start()
	hasty := startLiar(t, "http://"+alive.http)
	hasty.begin(&lie{tell: func(l *liar, c call, r *reply) {
		if c.ofBlock() && c.block() == "finalized" {
			l.instead(r, "eth_getBlockByNumber", "latest", false)
		}
	}})
	var fronts []*oracle
	setups := []struct{ name, upstream, bad string }{
		{"a stuck one behind it", "http://" + alive.http + ",http://" + stuck.http, ""},
		{"a stuck one before it", "http://" + stuck.http + ",http://" + alive.http, "the first node is asked, whatever the others have told of their heads"},
		{"a hasty one behind it", "http://" + alive.http + "," + hasty.url, ""},
		{"a hasty one before it", hasty.url + ",http://" + alive.http, "what one node calls final is kept for good"},
	}
	for _, s := range setups {
		f, key := startFleet(t, s.upstream, size{edges: 1, workers: 1})
		o := &oracle{fleet: f, key: key, http: f.httpCaller(f.edges[0], false, key)}
		o.settle(t, from)
		fronts = append(fronts, o)
	}
	alive.choose(t, choice(branch))
	changed := time.Now()
	for i, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			within := soon
			if s.bad != "" {
				within = fresh + grace
			}
			left := fronts[i].differs(t, from, to)
			for left != nil && time.Since(changed) < within {
				left = fronts[i].differs(t, from, to)
			}
			switch {
			case left == nil:
				t.Logf("all of the new chain after %v", time.Since(changed).Round(time.Millisecond))
			case s.bad != "":
				t.Logf("as it is now, since %s: %v", s.bad, left)
			default:
				t.Error(left)
			}
		})
	}
}

// differs compares what is answered at every place with a view. What is of neither view
// fails the test.
func (o *oracle) differs(t *testing.T, from, to view) (first error) {
	t.Helper()
	for at, want := range to.at {
		for index := range want {
			got, err := askPlace(t.Context(), o.http, at, index)
			if err != nil {
				t.Fatal(err)
			}
			if got != want[index] && got != from.at[at][index] {
				t.Errorf("uncle %d of %s is %v, which it is in neither chain", index, at, got)
			}
			if got != want[index] && first == nil {
				first = fmt.Errorf("uncle %d of %s is %v, want %v", index, at, got, want[index])
			}
		}
	}
	return first
}
