package bus_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/schema"
)

// When nobody answers, asking again must not make it worse.
func TestOutageIsNotAmplified(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, bus.ClientConfig{})
	for _, w := range f.workers {
		w.will(swallow)
	}
	const asks = 20_000
	var all []*one
	for n := range uint64(asks) {
		all = append(all, ask(t, f, schema.Question{Block: schema.Number(n)}, 2*time.Second))
	}
	for _, o := range all {
		o.want(schema.Timeout)
	}
	sum := func() (n int64) {
		for _, w := range f.workers {
			n += w.asked.Load()
		}
		return n
	}
	eventually(t, "all have arrived", func() bool { return sum() >= asks })
	// 5 %, and what each of 16 shards may have saved.
	if hedges := int64(f.retries(t, "slow")); hedges == 0 || hedges > asks/20+16*4 {
		t.Errorf("%d questions were hedged %d times", asks, hedges)
	}
	if got, most := sum(), asks+f.copies(t); got > most {
		t.Errorf("%d questions became %d, want %d at most", asks, got, most)
	}
}

// A slow answer is not waited for, and both answers make one.
func TestHedge(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, bus.ClientConfig{})
	var held atomic.Int64
	for _, w := range f.workers {
		w.will(func(id uint64, q schema.Question, reply string) {
			if w.asked.Load()%2 == 1 { // each second question of a worker
				w.answer(id, q, reply)
				return
			}
			held.Add(1)
			time.AfterFunc(150*time.Millisecond, func() { w.answer(id, q, reply); held.Add(-1) })
		})
	}
	for n := range uint64(40) {
		ask(t, f, schema.Question{Block: schema.Number(n)}, patience).want(schema.OK)
	}
	eventually(t, "all are answered in the end", func() bool { return held.Load() == 0 })
	hedged := f.retries(t, "slow")
	if hedged == 0 {
		t.Error("none was hedged")
	}
	eventually(t, "the other answers are dropped", func() bool {
		return counter(t, f.reg, "ommer_bus_late_answers_total", "") >= 1
	})
	if n := f.Unanswered(); n != 0 {
		t.Errorf("%d questions are counted as with workers", n)
	}
}

// A hedge that is lost as well is not the end, while there is credit: a shard begins with
// four.
func TestHedgeAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, bus.ClientConfig{Shards: 1})
	var mu sync.Mutex
	copies := map[uint64]int{}
	for _, w := range f.workers {
		w.will(func(id uint64, q schema.Question, reply string) {
			mu.Lock()
			copies[id]++
			lost := copies[id] < 3
			mu.Unlock()
			if !lost {
				w.answer(id, q, reply)
			}
		})
	}
	ask(t, f, byNumber, patience).want(schema.OK)
	if n := f.Unanswered(); n != 0 {
		t.Errorf("%d questions are counted as with workers", n)
	}
}
