package main

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// histogram counts durations. Its buckets are 1/64 of a power of two wide, so a
// percentile is off by less than 1 %. Any number of goroutines may add.
type histogram struct {
	buckets [(64 - subBits + 1) << subBits]atomic.Uint64
}

// subBits is how many bits of a duration in nanoseconds, after its first one, tell
// buckets apart.
const subBits = 6

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	shift := max(bits.Len64(v)-subBits-1, 0)
	return shift<<subBits + int(v>>shift)
}

// middle is the duration in the middle of a bucket.
func middle(bucket int) time.Duration {
	if bucket < 2<<subBits {
		return time.Duration(bucket)
	}
	shift := bucket>>subBits - 1
	low := uint64(bucket-shift<<subBits) << shift
	return time.Duration(low + 1<<shift/2)
}

func (h *histogram) add(d time.Duration) { h.buckets[bucketOf(d)].Add(1) }

func (h *histogram) count() (n uint64) {
	for i := range h.buckets {
		n += h.buckets[i].Load()
	}
	return n
}

// percentile returns the least duration that p percent of those counted do not
// exceed, 0 when there are none.
func (h *histogram) percentile(p float64) time.Duration {
	n := h.count()
	rank := max(uint64(math.Ceil(p/100*float64(n))), 1)
	for i := range h.buckets {
		c := h.buckets[i].Load()
		if c >= rank {
			return middle(i)
		}
		rank -= c
	}
	return 0
}

// median returns the middle of the values, the mean of the two in the middle of an
// even number, 0 of none.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(n-1)/2] + s[n/2]) / 2
}
