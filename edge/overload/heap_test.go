package overload

import (
	"runtime"
	"testing"
	"time"
)

func TestUsedKnowsGarbage(t *testing.T) {
	const budget = 1000
	for _, tt := range []struct {
		name          string
		before, after usage // a collection
		want          uint64
		collects      bool
	}{
		{"little is held", usage{held: 700, objects: 600, live: 10}, usage{}, 700, false},
		{"most is garbage", usage{held: 900, objects: 800, live: 100}, usage{held: 250, objects: 150, live: 150}, 250, true},
		{"most is in use", usage{held: 900, objects: 800, live: 100}, usage{held: 890, objects: 790, live: 780}, 890, true},
		{"known already", usage{held: 900, objects: 800, live: 780}, usage{}, 900, false},
		{"much comes while it is collected", usage{held: 900, objects: 800, live: 100}, usage{held: 900, objects: 800, live: 300}, 400, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, collections := tt.before, 0
			now := time.Unix(100, 0)
			h := &heap{budget: budget, collected: now.Add(-collectEvery), read: func() usage { return u }, collect: func() { u = tt.after; collections++ }}
			wantCollections := func(when string, want int) {
				t.Helper()
				if !tt.collects {
					want = 0
				}
				if collections != want {
					t.Errorf("%s: %d collections, want %d", when, collections, want)
				}
			}
			if got := h.used(now); got != tt.want {
				t.Errorf("%d are used, want %d", got, tt.want)
			}
			wantCollections("at first", 1)
			u = tt.before
			h.used(now.Add(collectEvery - 1))
			wantCollections("too early", 1)
			h.used(now.Add(collectEvery))
			wantCollections("in time", 2)
		})
	}
}

// What was in use and is garbage now looks as before until it is collected.
func TestUsedForgets(t *testing.T) {
	u, now := usage{held: 950, objects: 900, live: 900}, time.Unix(100, 0)
	h := &heap{budget: 1000, collected: now, read: func() usage { return u }, collect: func() { u = usage{held: 60, objects: 10, live: 10} }}
	if got := h.used(now.Add(collectAnyway - 1)); got != 950 {
		t.Errorf("%d are used before the collection", got)
	}
	if got := h.used(now.Add(collectAnyway)); got != 60 {
		t.Errorf("%d are used after it", got)
	}
}

var sink []byte

// TestHeapOfThisProcess: the real figures follow what is in use, and not garbage.
func TestHeapOfThisProcess(t *testing.T) {
	runtime.GC()
	h := newHeap(1)
	before := h.read().held
	const size = 64 << 20
	h.budget = before + size + size/4
	now := time.Now()
	sink = make([]byte, size)
	for i := range sink {
		sink[i] = 1
	}
	if used := h.used(now); used < before+size*9/10 {
		t.Errorf("%d are used beside %d in use before", used, size)
	}
	sink = nil
	if used := h.used(now.Add(collectAnyway)); used > before+size/2 {
		t.Errorf("%d are used, of which %d must be garbage", used, size)
	}
}

func TestLimits(t *testing.T) {
	for _, l := range []Limits{{}, {Memory: minMemory}} {
		if err := l.Validate(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if (Limits{Memory: minMemory - 1}).Validate() == nil {
		t.Error("less than an idle edge takes up is accepted")
	}
	if got := (Limits{Memory: 1 << 30}).Budget(); got != 1<<30 {
		t.Errorf("the budget is %d, not what was asked for", got)
	}
}
