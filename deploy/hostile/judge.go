package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// garbageRoom is how much garbage an edge lets gather before it collects, whatever is
// in use (bus/process/heap.go), and what the runtime needs beside it. It is part of
// every bound: any traffic fills it.
const garbageRoom = 96 << 20

// judge says what is not as it has to be. Nothing in it depends on how long anything
// took.
func (r *round) judge(rest usage) (complaints []string) {
	say := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	for _, w := range []struct {
		when string
		t    tally
	}{{"during the attack", r.During}, {"after it", r.After}} {
		if w.t.Wrong > 0 || w.t.Failed > 0 {
			say("%s %d honest answers were wrong and %d failed: %s", w.when, w.t.Wrong, w.t.Failed, strings.Join(w.t.Examples, "; "))
		}
		if w.t.Right == 0 {
			say("%s no honest question was answered", w.when)
		}
	}
	ends := r.attack.ends
	if r.alone && r.attack.aloneEnds != nil {
		ends = r.attack.aloneEnds
	}
	for _, m := range []struct {
		what      string
		met       map[string]int
		documents []string
		needed    bool
	}{
		// Who leaves at once may be gone before the answer.
		{"answers", r.Met.Answers, r.attack.answers, len(r.attack.answers) > 0 && !slices.Contains(ends, endLeft)},
		{"ends", r.Met.Ends, ends, true},
	} {
		for _, what := range slices.Sorted(maps.Keys(m.met)) {
			if !slices.Contains(m.documents, what) {
				say("%d %s are %q, documented is %q: %s", m.met[what], m.what, what, m.documents, r.attack.why)
			}
		}
		if m.needed && len(m.met) == 0 {
			say("there were no %s, documented is %q: %s", m.what, m.documents, r.attack.why)
		}
	}
	// Memory that was taken up before is given back only when nobody asks.
	if bound := max(rest.RSS+garbageRoom, r.Start.RSS) + int64(r.attack.growth)<<20; r.Most.RSS > bound {
		say("the edge took up %d MiB, the bound is %d: at rest %d and garbage %d, or before the attack %d, and for the attack %d",
			mib(r.Most.RSS), mib(bound), mib(rest.RSS), garbageRoom>>20, mib(r.Start.RSS), r.attack.growth)
	}
	return complaints
}

func mib(n int64) int64 { return n >> 20 }

// plus counts what another window had wrong or failed, and nothing else of it.
func (t tally) plus(o tally) tally {
	t.Wrong += o.Wrong
	t.Failed += o.Failed
	t.Examples = append(t.Examples, o.Examples...)
	return t
}
