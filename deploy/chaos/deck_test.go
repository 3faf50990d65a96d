package main

import (
	"slices"
	"testing"
)

// someSite has machines and nothing that runs.
func someSite() *site {
	s := new(site)
	for r, n := range map[role]int{server: servers, upstream: upstreams, worker: workers, edge: edges} {
		for i := range n {
			s.machines = append(s.machines, &machine{role: r, number: i, host: host{name: string(r) + "-" + string(rune('1'+i))}})
		}
	}
	return s
}

func draw(seed uint64, n int) (names []string) {
	d, s := newDeck(seed, kinds), someSite()
	for range n {
		f := d.draw(s)
		names = append(names, f.String()+f.hold.String())
	}
	return names
}

func TestSeedSaysWhatHappens(t *testing.T) {
	n := 3 * len(kinds)
	if a, b := draw(7, n), draw(7, n); !slices.Equal(a, b) {
		t.Errorf("the same seed gives %q and %q", a, b)
	}
	if slices.Equal(draw(7, n), draw(8, n)) {
		t.Error("another seed gives the same faults")
	}
}

func TestEachKindOnceInARound(t *testing.T) {
	d, s := newDeck(1, kinds), someSite()
	for range 2 {
		seen := map[string]bool{}
		for range kinds {
			f := d.draw(s)
			seen[f.kind.name] = true
			if f.target.role != f.kind.role || f.hold < shortest || f.hold > longest {
				t.Errorf("%s for %v", f, f.hold)
			}
		}
		if len(seen) != len(kinds) {
			t.Errorf("%d kinds in a round, want %d", len(seen), len(kinds))
		}
	}
}

// Two faults at a time are at machines of different roles, and none is left out for it.
func TestTwoAtATime(t *testing.T) {
	d, s := newDeck(1, kinds), someSite()
	seen, pairs := map[string]bool{}, 0
	for range len(kinds) {
		first := d.draw(s)
		seen[first.kind.name] = true
		if second := d.draw(s, first); second != nil {
			pairs++
			seen[second.kind.name] = true
			if second.kind.role == first.kind.role {
				t.Errorf("%s and %s", first, second)
			}
		}
	}
	if pairs == 0 || len(seen) != len(kinds) {
		t.Errorf("%d pairs, %d of %d kinds", pairs, len(seen), len(kinds))
	}
}
