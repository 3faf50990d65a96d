package bus

import (
	"github.com/ommer/ommer/schema"
)

// buckets of blocks: all blocks of a bucket have the same two workers. Enough of them
// make the workers' shares alike: with 16 workers each has 512, give or take 4 %.
const blockBuckets = 8192

// ranking says which two workers a block belongs to: those with the highest scores, by
// rendezvous hashing (Thaler and Ravishankar 1998). Every edge comes to the same two.
// When a worker comes or goes only the blocks that it has, or had, move.
type ranking struct {
	peers []*peer
	best  [blockBuckets][2]uint16 // indexes of peers; the same twice if there is one
}

// maxPeers is how many workers a client knows, more are left to the queue group.
const maxPeers = 1024

func newRanking(peers []*peer) *ranking {
	r := &ranking{peers: peers}
	for b := range r.best {
		var first, second uint64
		var i, j int
		for k, p := range peers {
			switch score := mix(p.seed ^ mix(uint64(b))); {
			case score >= first:
				second, j = first, i
				first, i = score, k
			case score >= second:
				second, j = score, k
			}
		}
		if len(peers) == 1 {
			j = i
		}
		r.best[b] = [2]uint16{uint16(i), uint16(j)}
	}
	return r
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

// other returns a worker that is not out, and another one for another block.
func (r *ranking) other(b schema.Selector, out func(*peer) bool) *peer {
	n := uint64(len(r.peers))
	first := mix(b.Affinity()) % n
	for k := range n {
		if p := r.peers[(first+k)%n]; !out(p) {
			return p
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
