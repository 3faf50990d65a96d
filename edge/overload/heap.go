package overload

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// Garbage is no pressure, but nobody knows how much there is before it was collected.
// A busy process lets it grow (see package process), so what the heap holds says little
// when that is much. Then, and only then, it is collected to find out.
const (
	// collectFrom is the part of the budget below which nothing depends on it: the
	// lowest threshold at which a stage is left.
	collectFrom = 0.85 * leaveBelow
	// collectShare is the part of the budget that what may be garbage must be worth,
	// collectEvery the time between two collections: they cost more the more is in
	// use, and must not become the load.
	collectShare = 1. / 32
	collectEvery = time.Second
	// collectAnyway is the time after which it may be that what was in use when last
	// collected is garbage by now. An edge that refuses all allocates too little to
	// be collected by itself.
	collectAnyway = 3 * time.Second
)

// usage is what the runtime tells of its memory, in bytes.
type usage struct {
	held    uint64 // what the system gave and did not get back, without what is free
	objects uint64 // part of it: the heap's objects, garbage among them
	live    uint64 // part of it: those that were in use when last collected
}

// heap measures the memory of the process.
type heap struct {
	budget  uint64 // above zero
	read    func() usage
	collect func()

	collected time.Time
}

func newHeap(budget uint64) *heap {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	return &heap{budget: budget, collect: runtime.GC, read: func() usage {
		metrics.Read(samples)
		v := func(i int) uint64 { return samples[i].Value.Uint64() }
		return usage{held: v(0) - v(1) - v(2), objects: v(3), live: v(4)}
	}}
}

// used is how much of the budget is in use. Between two collections it is what the
// last one has found, and whatever is not the heap's.
func (h *heap) used(now time.Time) uint64 {
	u := h.read()
	if float64(u.held) < collectFrom*float64(h.budget) {
		return u.held
	}
	if since := now.Sub(h.collected); since >= collectAnyway || since >= collectEvery && h.worth(u) {
		h.collected = now
		h.collect()
		u = h.read()
	}
	if !h.worth(u) {
		return u.held
	}
	return u.held - u.unknown()
}

// worth says whether there may be much garbage.
func (h *heap) worth(u usage) bool { return float64(u.unknown()) >= collectShare*float64(h.budget) }

// unknown is what was allocated since the last collection, and may be garbage.
func (u usage) unknown() uint64 { return min(u.objects-min(u.live, u.objects), u.held) }
