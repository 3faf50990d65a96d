package cache

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// content lists the keys of both queues, each from the oldest to the newest, and checks
// the links.
func content[K comparable, V any](t testing.TB, c *S3FIFO[K, V]) (probation, main []K) {
	t.Helper()
	list := func(q *queue[K, V], main bool) (keys []K) {
		var bytes int64
		var last *node[K, V]
		for n := q.oldest; n != nil; n = n.newer {
			if n.older != last || c.entries[n.key] != n || n.main != main {
				t.Fatalf("entry %v is not linked as it should be", n.key)
			}
			keys = append(keys, n.key)
			bytes += n.size
			last = n
		}
		if q.newest != last || bytes != q.bytes {
			t.Fatalf("%d bytes in the queue, %d counted", bytes, q.bytes)
		}
		return keys
	}
	probation, main = list(&c.probation, false), list(&c.main, true)
	if len(probation)+len(main) != c.Len() {
		t.Fatalf("%d and %d entries in the queues, %d counted", len(probation), len(main), c.Len())
	}
	return probation, main
}

// room returns a cache for n entries of no size.
func room(n int) *S3FIFO[int, int] {
	c := New[int, int](0)
	c.max = int64(n) * c.Overhead()
	return c
}

// TestOrder follows entries through the queues, with room for 20 and so for two on
// probation when it is full.
func TestOrder(t *testing.T) {
	c := room(20)
	for k := range 20 {
		c.Put(k, k, 0)
	}
	hit := func(times int, keys ...int) {
		for _, k := range keys {
			for range times {
				c.Get(k)
			}
		}
	}
	check := func(when string, wantProbation, wantMain []int) {
		t.Helper()
		if probation, main := content(t, c); !slices.Equal(probation, wantProbation) || !slices.Equal(main, wantMain) {
			t.Fatalf("%s: %v on probation, %v in the main queue; want %v and %v", when, probation, main, wantProbation, wantMain)
		}
	}
	hit(9, 0)
	hit(1, 2, 19)
	c.Put(20, 20, 0)
	check("0 has proved itself, 1 has not", span(2, 20), []int{0})
	c.Put(1, 1, 0)
	check("2 has, and 1 is remembered", span(4, 20), []int{0, 2, 1})
	for k := 21; k <= 37; k++ {
		c.Put(k, k, 0)
	}
	check("the hit of 19 was part of its question", span(21, 37), []int{0, 2, 1})
	hit(1, span(21, 37)...)
	c.Put(40, 40, 0)
	check("all have, and 0 makes room", []int{36, 37, 40}, append([]int{2, 1}, span(21, 35)...))
	hit(1, 2)
	hit(9, 1)
	c.Put(41, 41, 0)
	check("2 and 1 go round, 21 goes", []int{37, 40, 41}, append(span(22, 36), 2, 1))
	if c.entries[2].hits != 0 || c.entries[1].hits != maxHits-1 {
		t.Errorf("2 and 1 have %d and %d hits left, want 0 and %d", c.entries[2].hits, c.entries[1].hits, maxHits-1)
	}
}

// span is the numbers from first to last.
func span(first, last int) (s []int) {
	for k := first; k <= last; k++ {
		s = append(s, k)
	}
	return s
}

// TestNewestHitsDoNotCount scans a full cache and asks for each key three times, the
// last time when others have come in between.
func TestNewestHitsDoNotCount(t *testing.T) {
	const size, between = 10_000, 10_000 / newestShare
	c := room(size)
	for k := range 2 * size {
		c.Put(k, k, 0)
		if k >= size {
			for _, again := range []int{k, k - between/2, k - between} {
				c.Get(again)
			}
		}
	}
	const later = size + size/2
	c.Get(later)
	for k := range size - 1 {
		c.Put(2*size+k, 0, 0)
	}
	if _, main := content(t, c); !slices.Equal(main, []int{later}) {
		t.Errorf("%d keys are in the main queue, want the one alone that was asked for again later", len(main))
	}
}

func TestAll(t *testing.T) {
	c := room(100)
	for k := range 100 {
		c.Put(k, k, 0)
	}
	for range 2 {
		c.Get(7)
	}
	for range 9 {
		c.Get(8)
	}
	for k := range 80 {
		c.Put(100+k, k, 0)
	}
	c.Get(8)
	want := map[int]int{7: maxHits + 1, 8: maxHits + 2}
	seen := 0
	for k, worth := range c.All() {
		if worth != want[k] {
			t.Errorf("%d is worth %d, want %d", k, worth, want[k])
		}
		seen++
	}
	if seen != c.Len() {
		t.Errorf("%d keys are listed, there are %d", seen, c.Len())
	}
}

func TestReplaces(t *testing.T) {
	c := room(4)
	c.Put(1, 10, 0)
	c.Put(1, 11, c.Overhead())
	if v, ok := c.Get(1); !ok || v != 11 || c.Len() != 1 || c.Bytes() != 2*c.Overhead() {
		t.Errorf("value %d, %v; %d entries of %d bytes", v, ok, c.Len(), c.Bytes())
	}
	c.Put(2, 20, 0)
	c.Put(3, 30, 0)
	c.Put(1, 12, 2*c.Overhead()) // takes the room of another
	if c.Len() != 2 || c.Bytes() != 4*c.Overhead() {
		t.Errorf("%d entries of %d bytes", c.Len(), c.Bytes())
	}
	content(t, c)
	c.Put(1, 13, 4*c.Overhead()) // has no room at all, and the old value is no longer true
	if _, ok := c.Get(1); ok || c.Bytes() != c.Overhead() {
		t.Errorf("too large a value is kept: %v, %d bytes", ok, c.Bytes())
	}
}

func TestWithoutRoom(t *testing.T) {
	for _, max := range []int64{-1, 0, 10} {
		c := New[int, int](max)
		c.Put(1, 1, 0)
		if c.Len() != 0 {
			t.Errorf("a cache of %d bytes keeps an entry", max)
		}
	}
}

// FuzzCache holds the cache against a map: what it has is what was put last, within
// its bytes, and evictions are counted.
func FuzzCache(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 1, 2}, uint8(3))
	f.Add([]byte{0, 128, 0, 129, 255, 7, 7, 135}, uint8(1))
	f.Fuzz(func(t *testing.T, ops []byte, entries uint8) {
		c := room(int(entries))
		put := make(map[byte]int)
		fresh := uint64(0)
		for i, op := range ops {
			key := op & 0x1f
			if op&0x80 == 0 {
				if _, ok := c.Get(int(key)); ok != (c.entries[int(key)] != nil) {
					t.Fatal("Get finds what is not there")
				}
				continue
			}
			had := c.entries[int(key)] != nil
			c.Put(int(key), i, int64(op>>5&3)*8)
			put[key] = i
			if !had && c.entries[int(key)] != nil {
				fresh++
			}
			if c.Bytes() > c.max {
				t.Fatalf("%d bytes, at most %d are allowed", c.Bytes(), c.max)
			}
		}
		probation, main := content(t, c)
		for _, key := range append(probation, main...) {
			if v := c.entries[key].value; v != put[byte(key)] {
				t.Fatalf("key %d has %d, %d was put last", key, v, put[byte(key)])
			}
		}
		if c.Evicted() > fresh {
			t.Fatalf("%d evicted of %d", c.Evicted(), fresh)
		}
	})
}

// TestOverhead compares what is counted with what the heap grows by.
func TestOverhead(t *testing.T) {
	type key [6]uint64
	type value struct {
		_ [2][]byte
		_ int64
	}
	for _, entries := range []int{10_000, 100_000, 150_000} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		c := New[key, value](1 << 40)
		for i := range uint64(entries) {
			c.Put(key{i}, value{}, 0)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		grown, counted := float64(after.HeapAlloc-before.HeapAlloc), float64(c.Bytes())
		if ratio := grown / counted; ratio < 0.8 || ratio > 1.2 {
			t.Errorf("%d entries: the heap grew by %.0f bytes, %.0f are counted (%.2f)", entries, grown, counted, ratio)
		}
		runtime.KeepAlive(c)
	}
}

func BenchmarkGet(b *testing.B) {
	c := room(1 << 16)
	for k := range 1 << 16 {
		c.Put(k, k, 0)
	}
	k := 0
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.Get(k & (1<<16 - 1)); !ok {
			b.Fatal("missing")
		}
		k += 7919
	}
}

func BenchmarkPutEvicting(b *testing.B) {
	c := room(1 << 14)
	r := rand.New(rand.NewPCG(1, 2))
	k := 0
	b.ReportAllocs()
	for b.Loop() {
		c.Put(k, k, 0)
		c.Get(k - int(r.Uint32N(1<<14)))
		k++
	}
}
