package keys

import (
	"sync/atomic"
	"time"
)

// epoch is what budgets count from. Its monotonic clock knows no steps: a clock
// that is set back refuses nobody.
var epoch = time.Now()

// pace is a rate and a burst in nanoseconds.
type pace struct {
	interval int64 // from one call to the next at the full rate, rounded up; 0 for no rate
	reach    int64 // how far ahead of time a call may be: what the burst adds
}

func newPace(rate, burst int) pace {
	if rate == 0 {
		return pace{}
	}
	if burst == 0 {
		burst = rate
	}
	interval := (int64(time.Second) + int64(rate) - 1) / int64(rate)
	return pace{interval, int64(burst-1) * interval}
}

// budget is a token bucket in one word, as the generic cell rate algorithm has it
// (ITU-T I.371, annex A): the time at which the bucket is full again, in
// nanoseconds since epoch. A time that is past means that it is full; each call
// moves the time on by an interval. The zero value is full.
type budget struct{ full atomic.Int64 }

// take takes one token, or says how long to wait for it and takes nothing.
func (b *budget) take(now int64, p pace) (wait time.Duration) {
	for {
		full := b.full.Load()
		from := max(full, now)
		if wait := from - now - p.reach; wait > 0 {
			return time.Duration(wait)
		}
		if b.full.CompareAndSwap(full, from+p.interval) {
			return 0
		}
	}
}

// charge takes more tokens behind one that was taken, whether they are there or
// not.
func (b *budget) charge(n int, p pace) { b.full.Add(int64(n) * p.interval) }

// refill makes the bucket full.
func (b *budget) refill() { b.full.Store(0) }
