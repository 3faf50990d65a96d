package upstream

import (
	"cmp"
	"slices"
	"time"

	"github.com/ommer/ommer/schema"
)

// How much a node is worth to be asked now. Within one of them the preferred nodes come
// first, and of those that are preferred alike the one that will have the answer first.
const (
	sound  = iota
	behind // its head is below what is asked for, or that is pruned, as far as is known
	silent // it seems to hang, or has asked to be left alone
	broken // it is down
)

// choice is a node with what its place depends on.
type choice struct {
	node  *node
	worth int
	cost  float64
}

// order is the nodes in the order in which they are to be asked now for a block.
func (s *Set) order(sel schema.Selector, now time.Time) []*node {
	choices := make([]choice, len(s.nodes))
	for i, n := range s.nodes {
		choices[i] = choice{n, n.worth(sel, now), n.cost(now)}
	}
	slices.SortStableFunc(choices, func(a, b choice) int {
		return cmp.Or(
			cmp.Compare(a.worth, b.worth),
			cmp.Compare(a.node.terms.priority, b.node.terms.priority),
			cmp.Compare(a.cost, b.cost),
		)
	})
	order := make([]*node, len(choices))
	for i, c := range choices {
		order[i] = c.node
	}
	return order
}

func (n *node) worth(sel schema.Selector, now time.Time) int {
	latest, known := n.Latest()
	switch {
	case n.health.last(now):
		return broken
	case n.silent(now), n.shut.left(now) > 0:
		return silent
	case sel.Kind() == schema.ByNumber && (known && sel.Number() > latest || !n.lacks.has(sel.Number(), now)):
		return behind
	default:
		return sound
	}
}
