//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/deploy/testchain"
)

// reorgs are the ones that geth makes: the head of the trunk is depth blocks above the
// last block that it shares with a branch when that becomes longer, and then the trunk
// does. Every head, and what is safe and final, is a block with uncles, so that a wrong
// answer to a tag is seen.
var reorgs = []struct{ depth, shared int }{{1, 103}, {3, 107}, {10, 112}, {64, 124}}

// passedBy is why, as of now, a tag may go back for a moment: while geth changes chains,
// each of the new blocks is its head for a moment, from the lowest on (reorg of its
// core/blockchain.go).
const passedBy = "a lower head on another branch is followed at once when the only node has it"

// neverMerged is beyond every chain here: what is reorganised is proof of work, where
// blocks have uncles.
const neverMerged = 1000

// TestReorgDepths has geth reorganise its chain, shallowly and deeply, there and back.
// Heads only grow, as they do on a chain that is alive.
//
// While it does, many ask by number, tag and hash: each answer is of the chain before or
// after, no old one comes long after the change, nor, from one worker, after a new one.
// The numbers of what `latest`, `safe` and `finalized` name never go backwards.
func TestReorgDepths(t *testing.T) {
	shape := testchain.Shape{Length: 200, London: 40, Merge: neverMerged}
	o := &oracle{}
	var err error
	if o.trunk, err = shape.Blocks(); err != nil {
		t.Fatal(err)
	}
	genesis, err := shape.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	branches := make([][]*types.Block, len(reorgs))
	imports := [][]*types.Block{o.trunk[1:]}
	for i, r := range reorgs {
		shape.Fork, shape.Length = uint64(r.shared), r.shared+r.depth+2
		if branches[i], err = shape.Blocks(); err != nil {
			t.Fatal(err)
		}
		imports = append(imports, branches[i][r.shared+1:])
	}
	// Geth makes canonical what it imports last, and steps back to no ancestor of its
	// head while it has not heard of a consensus client. So it starts on a branch.
	shape.Fork, shape.Length = 90, 96
	start, err := shape.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	o.geth = startGeth(t, genesis, append(imports, start[91:])...)
	o.geth.choose(t, forkchoice{head: o.trunk[100], safe: o.trunk[80], finalized: o.trunk[80]})
	// One worker polls geth over HTTP, the other has it over WebSocket, where news can come
	// by themselves.
	type front struct {
		*fleet
		key string
	}
	var fronts []front
	for _, upstream := range []string{"http://" + o.geth.http, "ws://" + o.geth.ws} {
		f, key := startFleet(t, upstream, size{edges: 1, workers: 1})
		fronts = append(fronts, front{f, key})
	}
	for i, r := range reorgs {
		o.fleet, o.key = fronts[i%2].fleet, fronts[i%2].key
		o.http = o.fleet.httpCaller(o.fleet.edges[0], false, o.key)
		o.branch = branches[i]
		choice := func(blocks []*types.Block, head int) forkchoice {
			return forkchoice{head: blocks[head], safe: o.trunk[r.shared], finalized: o.trunk[r.shared-3]}
		}
		beyond, top := uint64(r.shared+r.depth+6), r.shared+r.depth
		before := choice(o.trunk, top)
		o.geth.choose(t, before)
		w := o.watchTags(t)
		from := newView(before, o.trunk, uint64(r.shared), beyond)
		o.settle(t, from)
		for _, step := range []struct {
			name   string
			choice forkchoice
			blocks []*types.Block
		}{
			{"there", choice(o.branch, top+1), o.branch},
			{"and back", choice(o.trunk, top+2), o.trunk},
		} {
			to := newView(step.choice, step.blocks, uint64(r.shared), beyond)
			ok := t.Run(fmt.Sprintf("depth %d/%s", r.depth, step.name), func(t *testing.T) {
				o.newSwitch(from, to, true).run(t, func() { o.geth.choose(t, step.choice) })
				o.sameAsGeth(t, to)
			})
			if !ok {
				w.end()
				return // the next one would begin somewhere else
			}
			from = to
		}
		w.end()
		t.Logf("depth %d: %d answers to tags, %d of them went back to a lower block; the lowest by %d", r.depth, w.asked, w.back, w.by)
		if w.back > 0 {
			t.Logf("as it is now, since %s", passedBy)
		}
	}
}

// settle waits until a view is what is answered.
func (o *oracle) settle(t *testing.T, v view) {
	t.Helper()
	eventually(t, soon, "the head to be seen", func() error {
		for at, want := range v.at {
			got, err := askPlace(t.Context(), o.http, at, 0)
			if err == nil && got != want[0] {
				err = fmt.Errorf("uncle 0 of %s is %v, want %v", at, got, want[0])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// sameAsGeth asks geth itself, so that the views are not only what the test believes.
func (o *oracle) sameAsGeth(t *testing.T, v view) {
	t.Helper()
	geth := &httpCaller{http: o.http.http, url: "http://" + o.geth.http}
	for at, want := range v.at {
		for index := range want {
			raw, err := geth.call(t.Context(), []byte(callText(index, byNumber, string(at), index)))
			if err != nil {
				t.Fatal(err)
			}
			var said struct {
				Result struct{ Hash common.Hash }
			}
			if err := json.Unmarshal(raw, &said); err != nil || said.Result.Hash != want[index] {
				t.Errorf("geth: uncle %d of %s is %v, want %v; %v", index, at, said.Result.Hash, want[index], err)
			}
		}
	}
}

// tagWatch asks for tags, each over a connection of its own, and looks at the numbers of
// the blocks that are named by the answers.
type tagWatch struct {
	asked, back int
	by          uint64 // the furthest it went back

	cancel context.CancelFunc
	all    sync.WaitGroup
	mu     sync.Mutex
}

func (o *oracle) watchTags(t *testing.T) *tagWatch {
	t.Helper()
	numbers := map[common.Hash]uint64{}
	for _, blocks := range [][]*types.Block{o.trunk, o.branch} {
		for _, b := range blocks {
			if hash := unclesOfBlock(b)[0]; hash != (common.Hash{}) {
				numbers[hash] = b.NumberU64()
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &tagWatch{cancel: cancel}
	for _, tag := range []place{"latest", "safe", "finalized"} {
		c := o.fleet.mustWS(o.fleet.edges[0], false, o.key)
		w.all.Go(func() {
			highest := uint64(0)
			for ctx.Err() == nil {
				got, err := askPlace(ctx, c, tag, 0)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("%s: %v", tag, err)
					}
					return
				}
				number, known := numbers[got] // null tells nothing
				w.mu.Lock()
				w.asked++
				if known && number < highest {
					w.back++
					w.by = max(w.by, highest-number)
				}
				w.mu.Unlock()
				highest = max(highest, number)
			}
		})
	}
	return w
}

// end waits for the last answers.
func (w *tagWatch) end() {
	w.cancel()
	w.all.Wait()
}
