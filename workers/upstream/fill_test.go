package upstream

import (
	"testing"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// filled looks at a node once, and at what stands below its head.
func filled(t *testing.T, node *upstreamtest.Node) (*watch, *View) {
	t.Helper()
	w := newWatch(t, Config{}, node)
	w.followers[0].unfilled = 0
	return w, w.mustLook(0)
}

func TestViewIsFilled(t *testing.T) {
	chain := upstreamtest.Generate(300, 300, "main")
	for _, tt := range []struct {
		name      string
		head      int
		finalized int64
		first     uint64
	}{
		{"down to the first block", 100, -1, 0},
		{"as far as there is room", 300, -1, 300 - Window + 1},
		{"down to what is final", 100, 60, 61},
		{"not at all", 100, 100, 99}, // it begins with the head and its parent
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := upstreamtest.Start(t, chain[:tt.head+1])
			node.SetFinalized(tt.finalized)
			_, v := filled(t, node)
			checkView(t, v, chain[:tt.head+1])
			if v.first != tt.first {
				t.Errorf("it begins at %d, want %d", v.first, tt.first)
			}
		})
	}
}

// What does not lead to the head is not taken in, and not asked for without end.
func TestFillIsProved(t *testing.T) {
	chain, other := upstreamtest.Generate(60, 60, "main"), upstreamtest.Generate(60, 3, "other")
	mixed := append(append(upstreamtest.Chain{}, other[:50]...), chain[50:]...)
	node := upstreamtest.Start(t, mixed)
	w, v := filled(t, node)
	if v.first != 59 {
		t.Errorf("it begins at %d: what stands there does not lead to its head", v.first)
	}
	for range 10 * tagsEvery {
		w.mustLook(0)
	}
	before := node.Calls.Load()
	for range tagsEvery {
		w.mustLook(0)
	}
	if got := node.Calls.Load() - before; got > tagsEvery+2 {
		t.Errorf("%d calls for %d looks", got, tagsEvery)
	}
	if err := w.set.Ready(); err != nil {
		t.Error(err)
	}
	b, found, err := w.set.Block(ctxFor(t, patience), schema.Number(55))
	if err != nil || !found {
		t.Fatal(found, err)
	}
	checkBlock(t, b, chain[55])
}
