package cache

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// content lists the keys from the oldest to the newest and checks the links.
func content[K comparable, V any](t testing.TB, s *Sieve[K, V]) []K {
	t.Helper()
	var keys []K
	var bytes int64
	var last *node[K, V]
	for n := s.oldest; n != nil; n = n.newer {
		if n.older != last || s.entries[n.key] != n {
			t.Fatalf("entry %v is not linked as it should be", n.key)
		}
		keys = append(keys, n.key)
		bytes += n.size
		last = n
	}
	if s.newest != last || len(keys) != s.Len() || bytes != s.Bytes() {
		t.Fatalf("%d entries of %d bytes in the queue, %d of %d counted", len(keys), bytes, s.Len(), s.Bytes())
	}
	return keys
}

// room returns a cache for n entries of no size.
func room(n int) *Sieve[int, int] {
	s := New[int, int](0)
	s.max = int64(n) * s.Overhead()
	return s
}

func TestSieveOrder(t *testing.T) {
	s := room(4)
	for k := range 4 {
		s.Put(k, k, 0)
	}
	s.Get(0)
	s.Get(2)
	for _, step := range []struct {
		put  int
		want []int
	}{
		{4, []int{0, 2, 3, 4}},    // 0 is spared, 1 goes
		{5, []int{0, 2, 4, 5}},    // 2 is spared, 3 goes: the hand went on
		{6, []int{0, 2, 5, 6}},    // 4 goes though it is newer than 0 and 2
		{7, []int{0, 2, 6, 7}},    // 5
		{8, []int{0, 2, 7, 8}},    // 6
		{9, []int{0, 2, 8, 9}},    // 7
		{10, []int{0, 2, 9, 10}},  // 8
		{11, []int{0, 2, 10, 11}}, // the hand has not come back to the popular ones yet
	} {
		s.Put(step.put, step.put, 0)
		if got := content(t, s); !slices.Equal(got, step.want) {
			t.Fatalf("after %d: %v, want %v", step.put, got, step.want)
		}
	}
}

func TestSieveResistsScans(t *testing.T) {
	s := room(1000)
	for round := range 200 {
		for k := range 500 { // the popular half
			if v, ok := s.Get(k); !ok {
				s.Put(k, k, 0)
			} else if v != k {
				t.Fatalf("key %d has value %d", k, v)
			}
		}
		for i := range 300 { // a scan that never repeats
			s.Put(1_000_000+1000*round+i, 0, 0)
		}
	}
	kept := 0
	for k := range 500 {
		if _, ok := s.Get(k); ok {
			kept++
		}
	}
	if kept < 450 {
		t.Errorf("%d of 500 popular entries have outlived the scan, want at least 450", kept)
	}
}

func TestSieveReplaces(t *testing.T) {
	s := room(4)
	s.Put(1, 10, 0)
	s.Put(1, 11, s.Overhead())
	if v, ok := s.Get(1); !ok || v != 11 || s.Len() != 1 || s.Bytes() != 2*s.Overhead() {
		t.Errorf("value %d, %v; %d entries of %d bytes", v, ok, s.Len(), s.Bytes())
	}
	s.Put(2, 20, 0)
	s.Put(1, 12, 3*s.Overhead()) // takes the room of the others
	if got := content(t, s); !slices.Equal(got, []int{1}) {
		t.Errorf("entries %v, want 1 alone", got)
	}
	s.Put(1, 13, 4*s.Overhead()) // has no room at all, and the old value is no longer true
	if _, ok := s.Get(1); ok || s.Bytes() != 0 {
		t.Errorf("too large a value is kept: %v, %d bytes", ok, s.Bytes())
	}
}

func TestSieveWithoutRoom(t *testing.T) {
	for _, max := range []int64{-1, 0, 10} {
		s := New[int, int](max)
		s.Put(1, 1, 0)
		if s.Len() != 0 {
			t.Errorf("a cache of %d bytes keeps an entry", max)
		}
	}
}

// FuzzSieve holds the cache against a map: what it has is what was put last, within
// its bytes, and evictions are counted.
func FuzzSieve(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 1, 2}, uint8(3))
	f.Add([]byte{0, 128, 0, 129, 255, 7, 7, 135}, uint8(1))
	f.Fuzz(func(t *testing.T, ops []byte, entries uint8) {
		s := room(int(entries))
		put := make(map[byte]int)
		fresh := uint64(0)
		for i, op := range ops {
			key := op & 0x1f
			if op&0x80 == 0 {
				if _, ok := s.Get(int(key)); ok != (s.entries[int(key)] != nil) {
					t.Fatal("Get finds what is not there")
				}
				continue
			}
			had := s.entries[int(key)] != nil
			s.Put(int(key), i, int64(op>>5&3)*8)
			put[key] = i
			if !had && s.entries[int(key)] != nil {
				fresh++
			}
			if s.Bytes() > s.max {
				t.Fatalf("%d bytes, at most %d are allowed", s.Bytes(), s.max)
			}
		}
		for _, key := range content(t, s) {
			if v := s.entries[key].value; v != put[byte(key)] {
				t.Fatalf("key %d has %d, %d was put last", key, v, put[byte(key)])
			}
		}
		if s.Evicted() > fresh {
			t.Fatalf("%d evicted of %d", s.Evicted(), fresh)
		}
	})
}

// TestSieveOverhead compares what is counted with what the heap grows by.
func TestSieveOverhead(t *testing.T) {
	type key [6]uint64
	type value struct {
		_ [2][]byte
		_ int64
	}
	for _, entries := range []int{10_000, 100_000, 150_000} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := New[key, value](1 << 40)
		for i := range uint64(entries) {
			s.Put(key{i}, value{}, 0)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		grown, counted := float64(after.HeapAlloc-before.HeapAlloc), float64(s.Bytes())
		if ratio := grown / counted; ratio < 0.8 || ratio > 1.2 {
			t.Errorf("%d entries: the heap grew by %.0f bytes, %.0f are counted (%.2f)", entries, grown, counted, ratio)
		}
		runtime.KeepAlive(s)
	}
}

func BenchmarkSieveGet(b *testing.B) {
	s := room(1 << 16)
	for k := range 1 << 16 {
		s.Put(k, k, 0)
	}
	k := 0
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.Get(k & (1<<16 - 1)); !ok {
			b.Fatal("missing")
		}
		k += 7919
	}
}

func BenchmarkSievePutEvicting(b *testing.B) {
	s := room(1 << 14)
	r := rand.New(rand.NewPCG(1, 2))
	k := 0
	b.ReportAllocs()
	for b.Loop() {
		s.Put(k, k, 0)
		s.Get(k - int(r.Uint32N(1<<14)))
		k++
	}
}
