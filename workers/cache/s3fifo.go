package cache

import (
	"iter"
	"unsafe"
)

// S3FIFO is a cache of which the package comment tells.
//
// A new entry comes into the probation queue, a tenth of the bytes. Who was hit there
// by the time that it is the oldest moves on to the main queue; who was not is evicted,
// and its key remembered for as long as it would have stood in the main queue: what
// comes back in that time goes there at once. In the main queue the oldest is evicted
// unless it was hit, which lets it go round once more per hit, up to three times. So
// what a scan brings in sees the probation queue only.
//
// A hit sets a counter and moves nothing. An eviction may pass over entries that were
// hit, each once per hit that it had.
type S3FIFO[K comparable, V any] struct {
	max       int64 // bytes
	entries   map[K]*node[K, V]
	probation queue[K, V]
	main      queue[K, V]
	ghosts    ghosts[K]
	puts      uint64 // new entries so far, which is the time that node.born is in
	evicted   uint64
}

const (
	probationShare = 10  // one in so many bytes is for the probation queue
	newestShare    = 100 // hits do not count for one in so many entries, the newest
	maxHits        = 3   // beyond it hits are not counted
)

// New returns a cache of at most max bytes. With max <= 0 it keeps nothing.
func New[K comparable, V any](max int64) *S3FIFO[K, V] {
	return &S3FIFO[K, V]{max: max, entries: make(map[K]*node[K, V])}
}

// Overhead is what an entry takes beyond the bytes that Put is told of: its node, its
// slot in the map with the share that the map keeps empty, and its place among the keys
// that are remembered, of which there are at most two per entry. A group of the map has
// a control byte and a slot per entry and is on average about two thirds full.
func (c *S3FIFO[K, V]) Overhead() int64 {
	var n node[K, V]
	var k K
	slot := int64(unsafe.Sizeof(k)+unsafe.Sizeof(&n)) + 1
	return int64(unsafe.Sizeof(n)) + slot*3/2 + 2*ghostSize
}

// Get returns the value of k, and counts that as a hit.
func (c *S3FIFO[K, V]) Get(k K) (v V, ok bool) {
	n := c.entries[k]
	if n == nil {
		return v, false
	}
	if n.hits < maxHits && (n.main || c.puts-n.born > uint64(len(c.entries)/newestShare)) {
		n.hits++
	}
	return n.value, true
}

// Put keeps v under k, in place of what was there. size is the number of bytes that v
// refers to; the overhead is added here. What has no room at all is not kept.
func (c *S3FIFO[K, V]) Put(k K, v V, size int64) {
	size += c.Overhead()
	n := c.entries[k]
	switch {
	case size > c.max:
		if n != nil {
			c.remove(n)
		}
	case n != nil:
		q := c.queue(n)
		q.remove(n) // so that it is not its own victim
		c.makeRoom(size)
		n.value, n.size = v, size
		q.push(n)
	default:
		c.makeRoom(size)
		c.puts++
		n = &node[K, V]{key: k, value: v, size: size, born: c.puts, main: c.ghosts.take(k, c.puts)}
		c.queue(n).push(n)
		c.entries[k] = n
	}
}

func (c *S3FIFO[K, V]) queue(n *node[K, V]) *queue[K, V] {
	if n.main {
		return &c.main
	}
	return &c.probation
}

// makeRoom evicts until size more bytes fit, which they do when nothing else is there.
func (c *S3FIFO[K, V]) makeRoom(size int64) {
	for c.Bytes()+size > c.max {
		if c.main.oldest == nil || c.probation.bytes > c.max/probationShare {
			c.judge(c.probation.oldest)
		} else {
			c.goRound(c.main.oldest)
		}
	}
}

// judge ends the probation of its oldest entry.
func (c *S3FIFO[K, V]) judge(n *node[K, V]) {
	if n.hits == 0 {
		c.remove(n)
		c.evicted++
		c.ghosts.remember(n.key, c.puts, len(c.entries))
		return
	}
	c.probation.remove(n)
	n.hits, n.main = 0, true
	c.main.push(n)
}

// goRound evicts the oldest entry of the main queue, or lets it go round.
func (c *S3FIFO[K, V]) goRound(n *node[K, V]) {
	if n.hits == 0 {
		c.remove(n)
		c.evicted++
		return
	}
	c.main.remove(n)
	n.hits--
	c.main.push(n)
}

func (c *S3FIFO[K, V]) remove(n *node[K, V]) {
	c.queue(n).remove(n)
	delete(c.entries, n.key)
}

// MaxWorth is the worth of what is asked for most.
const MaxWorth = 2*maxHits + 1

// All lists the keys in no order, with what each is worth: from 0, for what has not been
// asked for again, to MaxWorth. What is put and evicted while the list is being read
// may be in it or not.
func (c *S3FIFO[K, V]) All() iter.Seq2[K, int] {
	return func(yield func(K, int) bool) {
		for k, n := range c.entries {
			worth := int(n.hits)
			if n.main { // it has proved itself before
				worth += maxHits + 1
			}
			if !yield(k, worth) {
				return
			}
		}
	}
}

// Len returns the number of entries.
func (c *S3FIFO[K, V]) Len() int { return len(c.entries) }

// Bytes returns what the entries take, overhead included.
func (c *S3FIFO[K, V]) Bytes() int64 { return c.probation.bytes + c.main.bytes }

// Max returns the bytes that the entries may take.
func (c *S3FIFO[K, V]) Max() int64 { return max(c.max, 0) }

// Evicted returns how many entries have been evicted so far.
func (c *S3FIFO[K, V]) Evicted() uint64 { return c.evicted }
