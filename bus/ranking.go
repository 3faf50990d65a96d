package bus

import (
	"slices"

	"github.com/ommer/ommer/schema"
)

// buckets of blocks: all blocks of a bucket have the same two workers. Enough of them
// make the workers' shares alike: with 16 workers each has 512, give or take 4 %.
const blockBuckets = 8192

// ranking says which two workers a block belongs to: those with the highest scores, by
// rendezvous hashing (Thaler and Ravishankar 1998). Every edge comes to the same two.
// When a worker comes or goes only the blocks that it has, or had, move.
type ranking struct {
	peers []*peer // those that blocks belong to, and from near on those that are asked in their place
	near  int
	best  [blockBuckets][2]uint16 // indexes of peers; the same twice if there is one
}

// maxPeers is how many workers a client knows, more are left to the queue group.
const maxPeers = 1024

// newRanking divides the blocks among some workers. If there is only one its blocks have
// their second among others, which are farther away.
func newRanking(near, far []*peer) *ranking {
	r := &ranking{peers: slices.Concat(near, far), near: len(near)}
	for b := range r.best {
		i, j := top(b, r.peers[:r.near])
		if len(near) == 1 {
			if j = i; len(far) > 0 {
				k, _ := top(b, far)
				j = r.near + k
			}
		}
		r.best[b] = [2]uint16{uint16(i), uint16(j)}
	}
	return r
}

// top returns the places of the two workers with the highest scores for a bucket.
func top(bucket int, peers []*peer) (i, j int) {
	var first, second uint64
	for k, p := range peers {
		switch score := mix(p.seed ^ mix(uint64(bucket))); {
		case score >= first:
			second, j = first, i
			first, i = score, k
		case score >= second:
			second, j = score, k
		}
	}
	return i, j
}

// pair returns the two workers of a block.
func (r *ranking) pair(b schema.Selector) (first, second *peer) {
	best := r.best[mix(b.Affinity())%blockBuckets]
	return r.peers[best[0]], r.peers[best[1]]
}

// pick returns the worker to ask about a block, which is not that one: the first of the
// block's two, the second if the first is much busier, anyone if both are out of the
// question, and nil if all are.
func (r *ranking) pick(b schema.Selector, not *peer, now int64) *peer {
	if len(r.peers) == 0 {
		return nil
	}
	p, q := r.pair(b)
	out := func(p *peer) bool { return p == not || p.shunned.Load() > now }
	switch pOut, qOut := out(p), out(q); {
	case pOut && qOut:
		return r.other(b, out)
	case pOut:
		return q
	case qOut, p == q, p.cost() <= affinity*q.cost():
		return p
	default:
		return q
	}
}

// other returns a worker that is not out, and another one for another block; one of
// those that are near if it can be.
func (r *ranking) other(b schema.Selector, out func(*peer) bool) *peer {
	for _, peers := range [][]*peer{r.peers[:r.near], r.peers[r.near:]} {
		n := uint64(len(peers))
		for k := range n {
			if p := peers[(mix(b.Affinity())+k)%n]; !out(p) {
				return p
			}
		}
	}
	return nil
}

// mix is the finalizer of splitmix64 (Steele, Lea and Flood 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
