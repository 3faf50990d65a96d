package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// watch is a Set whose nodes are looked at when a test says so.
type watch struct {
	t         *testing.T
	set       *Set
	followers []*follower
}

func newWatch(t *testing.T, cfg Config, nodes ...*upstreamtest.Node) *watch {
	for _, n := range nodes {
		cfg.URLs = append(cfg.URLs, n.URL)
	}
	w := &watch{t: t, set: newSet(t, cfg)}
	w.set.canon.patience = time.Hour
	for _, n := range w.set.nodes {
		w.followers = append(w.followers, &follower{set: w.set, node: n, unfilled: mostUnfilled}) // it begins at the head
	}
	return w
}

// look looks at a node, as Run does again and again.
func (w *watch) look(node int) error {
	f := w.followers[node]
	err := f.look(ctxFor(w.t, 10*time.Second))
	if err != nil {
		f.node.failed(err)
		f.head = nil
	}
	return err
}

func (w *watch) mustLook(node int) *View {
	w.t.Helper()
	if err := w.look(node); err != nil {
		w.t.Fatal(err)
	}
	return w.set.View(time.Now())
}

// checkView compares all that a view holds with a chain.
func checkView(t *testing.T, v *View, c upstreamtest.Chain) {
	t.Helper()
	if v == nil {
		t.Fatal("there is no view")
	}
	if want := uint64(len(c) - 1); v.Latest() != want {
		t.Fatalf("the head is %d, want %d", v.Latest(), want)
	}
	if v.tip-v.first >= Window {
		t.Errorf("the view is from %d to %d", v.first, v.tip)
	}
	for n := v.first; n <= v.tip; n++ {
		p := v.At(schema.Number(n))
		if want := schema.Hash(c[n].Hash()); p == nil || p.Hash != want || p.Number != n || v.At(schema.BlockHash(want)) != p {
			t.Fatalf("at %d stands %v, want %v", n, p, want)
		}
		if types.CalcUncleHash(p.Uncles) != c[n].UncleHash() {
			t.Fatalf("block %d is held without its uncles", n)
		}
	}
}

// fork is two chains that part after a block, each with its number of blocks beyond the
// genesis.
func fork(parts, long, other int) (a, b upstreamtest.Chain) {
	return upstreamtest.Generate(long, parts, "one"), upstreamtest.Generate(other, parts, "other")
}

func TestViewFollowsReorgs(t *testing.T) {
	for _, tt := range []struct {
		name             string
		parts, from, to  int
		grown            bool // the view holds what was before
		displaced, first uint64
	}{
		{"of depth 1, to the same height", 39, 40, 40, true, 1, 20},
		{"of depth 5, to the same height", 35, 40, 40, true, 5, 20},
		{"of depth 5, to a higher head", 35, 40, 43, true, 5, 20},
		{"of depth 5, to a lower head", 35, 40, 37, true, 5, 20},
		{"to the height where they part", 35, 40, 36, true, 5, 20},
		{"beyond the view", 20, 40, 41, false, 2, 39},
		{"beyond the view, to a lower head", 20, 40, 30, false, 2, 29},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, after := fork(tt.parts, tt.from, tt.to)
			start := before
			if tt.grown {
				start = before[:22]
			}
			node := upstreamtest.Start(t, start)
			w := newWatch(t, Config{}, node)
			checkView(t, w.mustLook(0), start)
			node.SetChain(before)
			checkView(t, w.mustLook(0), before)
			node.SetChain(after)
			v := w.mustLook(0)
			checkView(t, v, after)
			if times, displaced := v.Reorgs(); times != 1 || displaced != tt.displaced || v.first != tt.first {
				t.Errorf("%d reorgs, of %d blocks, the view begins at %d; want 1, %d, %d", times, displaced, v.first, tt.displaced, tt.first)
			}
			node.SetChain(before) // and back
			if tt.from > tt.to || tt.from == tt.to {
				checkView(t, w.mustLook(0), before)
			}
		})
	}
}

// TestViewHasAWindow lets a chain grow beyond what a View holds.
func TestViewHasAWindow(t *testing.T) {
	chain := upstreamtest.Generate(Window+40, Window+40, "long")
	node := upstreamtest.Start(t, chain[:2])
	w := newWatch(t, Config{}, node)
	for n := 2; n <= len(chain); n = min(n+50, len(chain)) {
		node.SetChain(chain[:n])
		checkView(t, w.mustLook(0), chain[:n])
		if n == len(chain) {
			break
		}
	}
	if v := w.set.View(time.Now()); v.first != v.tip-Window+1 {
		t.Errorf("the view is from %d to %d", v.first, v.tip)
	}
	node.SetChain(chain[:100])
	far := newWatch(t, Config{}, node)
	far.mustLook(0)
	node.SetChain(chain)
	v := far.mustLook(0)
	checkView(t, v, chain)
	if times, _ := v.Reorgs(); times > 0 || v.first != v.tip-1 {
		t.Errorf("far behind: %d reorgs, the view begins at %d", times, v.first)
	}
}

// TestViewOfRandomReorgs has two nodes go from branch to branch at random, and compares
// the view with a model that knows the branches whole.
func TestViewOfRandomReorgs(t *testing.T) {
	const length = 60
	var branches []upstreamtest.Chain
	for i, parts := range []int{length, 20, 35, 45, 52, 58} {
		branches = append(branches, upstreamtest.Generate(length, parts, fmt.Sprint("branch ", i)))
	}
	r := rand.New(rand.NewPCG(1, 2))
	nodes := []*upstreamtest.Node{upstreamtest.Start(t, branches[0][:22]), upstreamtest.Start(t, branches[0][:22])}
	nodes[0].SetFinalized(19)
	w := newWatch(t, Config{}, nodes...)
	model := branches[0][:22]
	heads := [2]*types.Block{model[21], model[21]}
	w.mustLook(0)
	w.mustLook(1)
	has := func(b *types.Block) bool { // the model, where the view reaches
		return b.NumberU64() < uint64(len(model)) && model[b.NumberU64()].Hash() == b.Hash() && b.NumberU64() >= w.set.View(time.Now()).first
	}
	back, stayed := 0, 0
	for step := range 400 {
		i := r.IntN(2)
		chain := branches[r.IntN(len(branches))]
		chain = chain[:23+r.IntN(length-23)]
		if r.IntN(2) == 0 { // near the head, where it matters
			chain = chain[:min(len(chain), len(model)+1)]
		}
		head, other := chain[len(chain)-1], heads[1-i]
		heads[i] = head
		nodes[i].SetChain(chain)
		switch {
		case has(head):
		case len(chain) > len(model), !has(other) || other.NumberU64() < head.NumberU64():
			if len(chain) < len(model) {
				back++
			}
			model = chain
		default:
			stayed++
		}
		checkView(t, w.mustLook(i), model)
		if t.Failed() {
			t.Fatalf("at step %d", step)
		}
	}
	if back == 0 || stayed == 0 {
		t.Errorf("%d went back, %d were not followed: the test tests nothing", back, stayed)
	}
}

// TestFlappingNodes has two nodes of two branches take turns, while the head is read.
func TestFlappingNodes(t *testing.T) {
	one, other := fork(20, 60, 60)
	nodes := []*upstreamtest.Node{upstreamtest.Start(t, one[:25]), upstreamtest.Start(t, other[:25])}
	s := newSet(t, Config{URLs: []string{nodes[0].URL, nodes[1].WSURL}, PollInterval: 2 * time.Millisecond})
	run(t, s)
	highest := uint64(0)
	read := func() uint64 {
		v := s.View(time.Now())
		if v == nil {
			return 0
		}
		if v.Latest() < highest {
			t.Errorf("the head went back from %d to %d", highest, v.Latest())
		}
		highest = max(highest, v.Latest())
		return v.Latest()
	}
	for n := 26; n < 60; n++ {
		nodes[n%2].SetChain([]upstreamtest.Chain{one, other}[n%2][:n+1])
		eventually(t, func() bool { return read() == uint64(n) })
	}
	if times, _ := s.View(time.Now()).Reorgs(); times < 20 {
		t.Errorf("%d reorgs", times)
	}
}

// TestNodesThatDisagree looks at two nodes in turn.
func TestNodesThatDisagree(t *testing.T) {
	one, other := fork(30, 50, 50)
	first, second := upstreamtest.Start(t, one[:41]), upstreamtest.Start(t, other[:41])
	w := newWatch(t, Config{}, first, second)
	checkView(t, w.mustLook(0), one[:41])
	checkView(t, w.mustLook(1), one[:41]) // the same height: it stays
	second.SetChain(other[:36])
	checkView(t, w.mustLook(1), one[:41]) // lower: it stays
	second.SetChain(other[:42])
	checkView(t, w.mustLook(1), other[:42]) // higher
	checkView(t, w.mustLook(0), other[:42])
	first.SetChain(one[:42])
	checkView(t, w.mustLook(0), other[:42])
	w.set.nodes[1].failed(ErrUntrue) // who stood by it is down
	checkView(t, w.mustLook(0), one[:42])
}

// TestChainThatWentBack is what debug_setHead does.
func TestChainThatWentBack(t *testing.T) {
	chain := upstreamtest.Generate(40, 40, "main")
	nodes := []*upstreamtest.Node{upstreamtest.Start(t, chain[:31]), upstreamtest.Start(t, chain[:31])}
	nodes[0].SetFinalized(5)
	w := newWatch(t, Config{}, nodes...)
	w.mustLook(0)
	nodes[0].SetChain(chain)
	checkView(t, w.mustLook(0), chain)
	checkView(t, w.mustLook(1), chain) // one is behind
	nodes[0].SetChain(chain[:36])
	checkView(t, w.mustLook(0), chain) // both are, but not for long
	w.set.canon.patience = 0
	v := w.set.canon.state.Load()
	if w.mustLook(1); w.set.canon.state.Load() != v {
		t.Error("the lower of two has taken the view back")
	}
	w.mustLook(0)
	w.set.canon.patience = time.Hour
	v = w.set.View(time.Now())
	checkView(t, v, chain[:36])
	if f, ok := v.Finalized(); !ok || f != 5 {
		t.Errorf("finalized is %d, %v", f, ok)
	}
}

func TestViewThatNobodyConfirms(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	w := newWatch(t, Config{}, node)
	if v := w.set.View(time.Now()); v != nil {
		t.Error("there is a view before any node was asked")
	}
	w.mustLook(0)
	now := time.Now()
	if v := w.set.View(now.Add(time.Hour + time.Second)); v != nil {
		t.Error("the view is there when nobody has confirmed it for long")
	}
	if v := w.set.View(now.Add(time.Hour - time.Minute)); v == nil {
		t.Error("the view is gone too early")
	}
}

func TestFalseHeads(t *testing.T) {
	chain, other := fork(20, 40, 40)
	resealed := func(edit func(h *types.Header)) map[string]any {
		h := types.CopyHeader(chain[30].Header())
		edit(h)
		return upstreamtest.Render(types.NewBlockWithHeader(h))
	}
	for _, tt := range []struct {
		name  string
		head  map[string]any
		looks int // until it is a fault
	}{
		{"that does not hash", func() map[string]any {
			o := upstreamtest.Render(chain[30])
			o["gasUsed"] = "0x1"
			return o
		}(), 1},
		{"far above its parent", resealed(func(h *types.Header) { h.Number.SetUint64(1 << 40); h.UncleHash = types.EmptyUncleHash }), 1},
		{"without a parent", resealed(func(h *types.Header) { h.ParentHash[0]++; h.UncleHash = types.EmptyUncleHash }), failuresUntilDown},
		{"with made up uncles", resealed(func(h *types.Header) { h.UncleHash[0]++ }), failuresUntilDown},
		{"of proof of stake with uncles", resealed(func(h *types.Header) { h.Difficulty.SetUint64(0); h.UncleHash[0]++ }), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			honest, liar := upstreamtest.Start(t, chain[:28]), upstreamtest.Start(t, chain[:30])
			w := newWatch(t, Config{ChainID: upstreamtest.ChainID}, honest, liar)
			v := w.mustLook(0)
			liar.Falsify(func(_, block string, _ int, object map[string]any) (map[string]any, error) {
				if block == "latest" {
					return tt.head, nil
				}
				return object, nil
			})
			for look := 1; look <= tt.looks; look++ {
				if err := w.look(1); errors.Is(err, ErrUntrue) != (look == tt.looks) {
					t.Errorf("look %d of %d: %v", look, tt.looks, err)
				}
			}
			if w.set.View(time.Now()) != v {
				t.Error("the view has changed")
			}
			w.look(1)
			honest.SetChain(other)
			checkView(t, w.mustLook(0), other) // it goes on without the liar
		})
	}
}

// TestFinalBlocksStay has a node contradict what was final.
func TestFinalBlocksStay(t *testing.T) {
	before, after := fork(20, 40, 45)
	for name, cfg := range map[string]Config{"finalized": {}, "deep enough": {Finality: 15}} {
		t.Run(name, func(t *testing.T) {
			node := upstreamtest.Start(t, before[:22])
			var logged syncBuffer
			cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			w := newWatch(t, cfg, node)
			w.mustLook(0)
			if cfg.Finality == 0 {
				node.SetFinalized(25)
			}
			node.SetChain(before)
			v := w.mustLook(0)
			if !v.Final(25) || v.Final(26) {
				t.Fatalf("25 is final: %v, 26: %v", v.Final(25), v.Final(26))
			}
			node.SetChain(after)
			for range 3 {
				checkView(t, w.mustLook(0), before)
			}
			if n := strings.Count(logged.String(), "displaces final blocks"); n != 1 {
				t.Errorf("it was logged %d times", n)
			}
			w.set.canon.patience = 0 // nobody has stood by it for long
			w.mustLook(0)
			checkView(t, w.set.canon.state.Load(), after)
		})
	}
}

func TestTagsOfTheView(t *testing.T) {
	before, after := fork(20, 40, 40)
	node := upstreamtest.Start(t, before[:22])
	reg := prometheus.NewRegistry()
	w := newWatch(t, Config{Registerer: reg}, node)
	wantTags := func(chain upstreamtest.Chain, safe, finalized int) {
		t.Helper()
		v := w.mustLook(0)
		checkView(t, v, chain)
		for tag, n := range map[schema.Tag]int{schema.Safe: safe, schema.Finalized: finalized} {
			p := v.At(schema.Tagged(tag))
			if n < 0 && p != nil || n >= 0 && (p == nil || p.Hash != schema.Hash(chain[n].Hash()) || types.CalcUncleHash(p.Uncles) != chain[n].UncleHash()) {
				t.Errorf("%v is %v, want block %d", tag, p, n)
			}
		}
	}
	wantTags(before[:22], -1, -1)
	node.SetFinalized(14) // below what the view holds
	node.SetChain(before[:24])
	wantTags(before[:24], 14, 14)
	node.SetFinalized(12)
	node.SetChain(before[:26])
	wantTags(before[:26], 14, 14) // not back
	node.SetFinalized(20)
	for range tagsEvery { // without a new head
		w.mustLook(0)
	}
	wantTags(before[:26], 20, 20)
	node.SetChain(after[:25])
	wantTags(after[:25], 20, 20)
	want := map[string]float64{"latest_block": 24, "safe_block": 20, "finalized_block": 20, "blocks": 5}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "ommer_upstream_view_")
		if value, ok := want[name]; ok && f.GetMetric()[0].GetGauge().GetValue() == value {
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no metrics with the values %v", want)
	}
}

// TestSubscription has a pause between looks that is longer than the test.
func TestSubscription(t *testing.T) {
	chain := upstreamtest.Generate(40, 40, "main")
	node := upstreamtest.Start(t, chain[:31])
	s := newSet(t, Config{URLs: []string{node.WSURL}, PollInterval: 5 * time.Second})
	run(t, s)
	head := func() uint64 {
		if v := s.View(time.Now()); v != nil {
			return v.Latest()
		}
		return 0
	}
	eventually(t, func() bool { return head() == 30 && node.Subscriptions.Load() == 1 })
	for n := 32; n < 34; n++ {
		node.SetChain(chain[:n])
		eventually(t, func() bool { return head() == uint64(n-1) })
	}
	s.nodes[0].failed(ErrUntrue) // it is connected to anew
	eventually(t, func() bool { return node.Subscriptions.Load() == 0 })
	eventually(t, func() bool { return node.Subscriptions.Load() == 1 })
}

func TestNoSubscription(t *testing.T) {
	chain := upstreamtest.Generate(40, 40, "main")
	node := upstreamtest.Start(t, chain[:31])
	node.Mute()
	s := newSet(t, Config{URLs: []string{node.WSURL}, PollInterval: 5 * time.Millisecond})
	run(t, s)
	eventually(t, func() bool { v := s.View(time.Now()); return v != nil && v.Latest() == 30 })
	node.SetChain(chain)
	eventually(t, func() bool { return s.View(time.Now()).Latest() == 40 })
}

// TestHeadWithUnknownFields is that of a chain after a fork that this program does not
// know.
func TestHeadWithUnknownFields(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	node.Falsify(func(_, _ string, _ int, object map[string]any) (map[string]any, error) {
		object["gasUsed"], object["fieldOfTheFuture"] = hexutil.Uint64(1), "0x1"
		return object, nil
	})
	w := newWatch(t, Config{}, node)
	if v := w.mustLook(0); v != nil {
		t.Error("it is believed")
	}
	if err := w.set.Ready(); err != nil {
		t.Errorf("the node is not up: %v", err)
	}
}
