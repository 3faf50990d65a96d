// Package cache is a cache bounded in bytes for a single owner.
//
// A Sieve has no lock: one goroutine at a time uses it, which is what the actor that
// owns it guarantees. It knows nothing of what it keeps, and never drops an entry for
// its age.
package cache

import "unsafe"

// Sieve is a cache with the eviction policy SIEVE (Zhang et al., NSDI '24).
//
// Entries stand in a queue in the order in which they came. A hit only sets the
// entry's visited bit and moves nothing. When room is needed, a hand walks from the
// oldest entry towards the newest and on from where it last stood: it clears the bits
// that it finds set and evicts the first entry without one. So what was never asked
// for again goes at the hand's next pass, however much of it comes in between, and a
// scan over a million blocks does not push out the ones that are asked for again and
// again; what is popular stays in its place as long as it is hit once per pass.
//
// LRU would write to the list at every hit and give a scan the whole cache.
type Sieve[K comparable, V any] struct {
	max     int64 // bytes
	bytes   int64 // of all entries, overhead included
	entries map[K]*node[K, V]
	newest  *node[K, V]
	oldest  *node[K, V]
	hand    *node[K, V] // the next to be looked at; nil: start at the oldest
	evicted uint64
}

type node[K comparable, V any] struct {
	key     K
	value   V
	newer   *node[K, V] // towards newest
	older   *node[K, V]
	size    int64
	visited bool
}

// New returns a cache of at most max bytes. With max <= 0 it keeps nothing.
func New[K comparable, V any](max int64) *Sieve[K, V] {
	return &Sieve[K, V]{max: max, entries: make(map[K]*node[K, V])}
}

// Overhead is what an entry takes beyond the bytes that Put is told of: its node, and
// its slot in the map with the share that the map keeps empty. A group of the map has
// a control byte and a slot per entry and is on average about two thirds full.
func (s *Sieve[K, V]) Overhead() int64 {
	var n node[K, V]
	var k K
	slot := int64(unsafe.Sizeof(k)+unsafe.Sizeof(&n)) + 1
	return int64(unsafe.Sizeof(n)) + slot*3/2
}

// Get returns the value of k, and marks it as asked for.
func (s *Sieve[K, V]) Get(k K) (v V, ok bool) {
	n := s.entries[k]
	if n == nil {
		return v, false
	}
	n.visited = true
	return n.value, true
}

// Put keeps v under k, in place of what was there. size is the number of bytes that v
// refers to; the overhead is added here. What has no room at all is not kept.
func (s *Sieve[K, V]) Put(k K, v V, size int64) {
	size += s.Overhead()
	n := s.entries[k]
	if size > s.max {
		if n != nil {
			s.remove(n)
		}
		return
	}
	if n != nil {
		s.bytes += size - n.size
		n.value, n.size = v, size
	} else {
		s.makeRoom(size) // before it is in the queue, so that it is not its own victim
		n = &node[K, V]{key: k, value: v, size: size, older: s.newest}
		if s.newest != nil {
			s.newest.newer = n
		} else {
			s.oldest = n
		}
		s.newest = n
		s.entries[k] = n
		s.bytes += size
	}
	s.makeRoom(0)
}

// makeRoom evicts until size more bytes fit.
func (s *Sieve[K, V]) makeRoom(size int64) {
	for s.bytes+size > s.max && s.oldest != nil {
		n := s.hand
		if n == nil {
			n = s.oldest
		}
		for n.visited {
			n.visited = false
			if n = n.newer; n == nil {
				n = s.oldest
			}
		}
		s.hand = n.newer
		s.remove(n)
		s.evicted++
	}
}

func (s *Sieve[K, V]) remove(n *node[K, V]) {
	if s.hand == n {
		s.hand = n.newer
	}
	if n.newer != nil {
		n.newer.older = n.older
	} else {
		s.newest = n.older
	}
	if n.older != nil {
		n.older.newer = n.newer
	} else {
		s.oldest = n.newer
	}
	delete(s.entries, n.key)
	s.bytes -= n.size
}

// Len returns the number of entries.
func (s *Sieve[K, V]) Len() int { return len(s.entries) }

// Bytes returns what the entries take, overhead included.
func (s *Sieve[K, V]) Bytes() int64 { return s.bytes }

// Evicted returns how many entries have been evicted so far.
func (s *Sieve[K, V]) Evicted() uint64 { return s.evicted }
