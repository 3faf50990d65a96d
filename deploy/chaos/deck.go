package main

import (
	"math/rand/v2"
	"time"
)

// How long a fault lasts until it is healed: some are over before an edge gives up what
// they hold back, some are not.
const (
	shortest = lookupTime - 2*time.Second
	longest  = lookupTime + 2*time.Second
)

// deck draws faults. The same seed gives the same ones: each kind once, in an order
// that is drawn, then each once more in another order.
type deck struct {
	rng   *rand.Rand
	kinds []kind
	left  []kind
	drawn int
}

func newDeck(seed uint64, kinds []kind) *deck {
	return &deck{rng: rand.New(rand.NewPCG(seed, 0)), kinds: kinds}
}

// draw returns the next fault, nil if it cannot happen beside those that are taken: the
// next call tries again.
func (d *deck) draw(s *site, taken ...*fault) *fault {
	if len(d.left) == 0 {
		for _, i := range d.rng.Perm(len(d.kinds)) {
			d.left = append(d.left, d.kinds[i])
		}
	}
	k := d.left[0]
	machines := s.of(k.role)
	f := &fault{
		kind: k, number: d.drawn + 1, site: s, target: machines[d.rng.IntN(len(machines))],
		// What is found out only when it happens must not change what is drawn after it.
		rng:  rand.New(rand.NewPCG(d.rng.Uint64(), 0)),
		hold: shortest + time.Duration(d.rng.Int64N(int64(longest-shortest))),
	}
	for _, t := range taken {
		// A second fault of the same role would be an outage: two of three servers
		// keep nothing, and no edge answers nobody.
		if t.kind.role == k.role {
			return nil
		}
	}
	d.left = d.left[1:]
	d.drawn++
	return f
}

// both says whether the next fault may begin while another one lasts.
func (d *deck) both() bool { return d.rng.IntN(2) == 0 }
