package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A bucket's middle lies in the bucket, and is within 1 % of all that it counts.
func TestBuckets(t *testing.T) {
	values := []time.Duration{0, 1, 63, 64, 65, 127, 128, 129, 255, 256, time.Millisecond, time.Hour, math.MaxInt64}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		values = append(values, time.Duration(rnd.Int64()>>rnd.IntN(63)))
	}
	slices.Sort(values)
	last := 0
	for _, v := range values {
		b := bucketOf(v)
		if b < last {
			t.Fatalf("%d is in bucket %d, a smaller one is in %d", v, b, last)
		}
		last = b
		m := middle(b)
		if bucketOf(m) != b {
			t.Fatalf("the middle of bucket %d is %d, which is in %d", b, m, bucketOf(m))
		}
		if off := math.Abs(float64(m - v)); off > float64(v)/100 {
			t.Fatalf("%d counts as %d", v, m)
		}
	}
	if got := bucketOf(-time.Second); got != 0 {
		t.Errorf("a negative duration is in bucket %d", got)
	}
}

func TestPercentile(t *testing.T) {
	var h histogram
	if got := h.percentile(50); got != 0 || h.count() != 0 {
		t.Errorf("of nothing: %v of %d", got, h.count())
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	var all []time.Duration
	for range 9_999 {
		d := time.Duration(rnd.ExpFloat64() * float64(time.Millisecond))
		all = append(all, d)
		h.add(d)
	}
	slices.Sort(all)
	for _, p := range []float64{0, 0.01, 1, 50, 90, 99, 99.9, 100} {
		want := all[max(int(math.Ceil(p/100*float64(len(all))))-1, 0)] // the nearest rank
		if got := h.percentile(p); math.Abs(float64(got-want)) > float64(want)/100 {
			t.Errorf("p%v is %v, want %v", p, got, want)
		}
	}
	if got := h.count(); got != 9_999 {
		t.Errorf("counted %d", got)
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0}, {[]float64{7}, 7}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5},
	} {
		given := slices.Clone(tt.values)
		if got := median(tt.values); got != tt.want {
			t.Errorf("of %v: %v, want %v", tt.values, got, tt.want)
		}
		if !slices.Equal(given, tt.values) {
			t.Errorf("%v was changed to %v", given, tt.values)
		}
	}
}
