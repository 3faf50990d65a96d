package cache

import (
	"hash/maphash"
	"math/bits"
)

// ghosts remember keys that were evicted from the probation queue, for as many new
// entries as there are entries. Of a key a part of its hash is kept, so two may be taken
// for one another: then an entry gets to the main queue that has not earned it.
type ghosts[K comparable] struct {
	seed  maphash.Seed
	table []ghost // in buckets; none before the first eviction
}

// ghost is a remembered key.
type ghost struct {
	print uint32 // of the hash; what chooses the bucket are other bits of it
	gone  uint32 // the low half of S3FIFO.puts then
}

const (
	ghostSize  = 8
	bucketSize = 4
)

func (g *ghosts[K]) bucket(k K) (bucket []ghost, print uint32) {
	h := maphash.Comparable(g.seed, k)
	at := int(uint32(h)) & (len(g.table)/bucketSize - 1) * bucketSize
	return g.table[at : at+bucketSize], uint32(h>>32) | 1 // 0 is an empty place
}

// remember keeps a key in place of the one that went first.
func (g *ghosts[K]) remember(k K, puts uint64, entries int) {
	if entries > len(g.table) { // the sizes of entries differ, so their number grows
		// What was remembered is lost with the old table. That happens only as often as
		// the number of entries doubles.
		g.seed = maphash.MakeSeed()
		g.table = make([]ghost, max(bucketSize, 1<<bits.Len(uint(entries-1))))
	}
	if len(g.table) == 0 {
		return // the cache had one entry
	}
	bucket, print := g.bucket(k)
	first := 0
	for i := range bucket {
		if bucket[i].print == 0 || bucket[i].print == print {
			first = i
			break
		}
		if uint32(puts)-bucket[i].gone > uint32(puts)-bucket[first].gone {
			first = i
		}
	}
	bucket[first] = ghost{print, uint32(puts)}
}

// take says whether a key is remembered, and forgets it.
func (g *ghosts[K]) take(k K, puts uint64) bool {
	if len(g.table) == 0 {
		return false
	}
	bucket, print := g.bucket(k)
	for i := range bucket {
		if bucket[i].print == print {
			recent := uint32(puts)-bucket[i].gone <= uint32(len(g.table))
			bucket[i] = ghost{}
			return recent
		}
	}
	return false
}
