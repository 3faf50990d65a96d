package process

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGarbageHasTheSameRoom(t *testing.T) {
	for _, tt := range []struct {
		live uint64
		want int
	}{
		{0, 1600},
		{1 << 20, 1600},
		{8 << 20, 800},
		{64 << 20, 0}, // as it is
		{65 << 20, 0}, // not worth a change
		{96 << 20, 66},
		{1 << 30, 50},
	} {
		k := keeper{percent: 100}
		if got, free := k.look(heap{live: tt.live, occupied: tt.live, allocated: 1 << 40}); got != tt.want || free {
			t.Errorf("%d MiB live: GOGC %d, free %v, want %d", tt.live>>20, got, free, tt.want)
		}
	}
}

func TestMemoryIsGivenBackWhenQuiet(t *testing.T) {
	k := keeper{percent: 100}
	h := heap{live: 80 << 20, occupied: 120 << 20, free: 10 << 20}
	look := func(allocated uint64) bool {
		h.allocated += allocated
		_, free := k.look(h)
		return free
	}
	look(1 << 30)
	for range 20 {
		if look(2 << 20) {
			t.Fatal("given back while busy")
		}
	}
	looks := 1
	for ; !look(1000); looks++ {
		if looks > 100 {
			t.Fatal("never given back")
		}
	}
	if looks != quietLooks {
		t.Errorf("given back after %d quiet looks, want %d", looks, quietLooks)
	}
	h.occupied, h.free = h.live+1<<20, 1<<20 // as collecting leaves it
	for range 20 {
		if look(1000) {
			t.Fatal("given back though there is nothing")
		}
	}
}

// Garbage has its room from the first collection on that finds more in use, not only
// when the interval is over.
func TestCollectionsAreNoticed(t *testing.T) {
	stop := lookAfter(time.Hour)
	defer stop()
	setting := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	comesTo := func(what string, fits func(percent uint64) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
			runtime.GC()
			metrics.Read(setting)
			percent := setting[0].Value.Uint64()
			if fits(percent) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("GOGC is %d with %s", percent, what)
			}
		}
	}
	comesTo("little in use", func(percent uint64) bool { return percent > 400 })
	kept := make([]byte, 80<<20)
	comesTo("80 MiB in use", func(percent uint64) bool { return percent < 90 })
	kept[0] = 1
	comesTo("little in use again", func(percent uint64) bool { return percent > 400 })
}

func TestReadHeap(t *testing.T) {
	before := readHeap()
	kept := make([]byte, 32<<20)
	after := readHeap()
	if after.allocated-before.allocated < uint64(len(kept)) || after.occupied == 0 {
		t.Errorf("32 MiB more: %+v, then %+v", before, after)
	}
	kept[0] = 1
}
