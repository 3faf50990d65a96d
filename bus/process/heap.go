package process

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The collector's default lets garbage grow to the size of what is in use. That
// serves neither end here: a busy process with a small heap collects dozens of times
// a second, and one that holds many idle connections keeps twice what they need. So
// garbage has the same room whatever is in use, and is given back to the system when
// little happens. Whoever sets GOGC decides for himself; GOMEMLIMIT holds as ever.
const (
	garbageRoom = 64 << 20 // bytes
	// Bounds on GOGC: a large heap costs more to collect, and a tiny one must not
	// take this for no limit at all.
	minPercent, maxPercent = 50, 1600

	heapInterval = time.Second
	// A process is quiet when it has allocated less than quietBytes in each of
	// quietLooks looks. Memory is worth giving back from giveBack bytes on and from
	// one part in giveBackShare of what is in use.
	quietBytes    = 1 << 20
	quietLooks    = 5
	giveBack      = 4 << 20
	giveBackShare = 16
)

// keepHeap looks after the garbage collector until stop is called.
func keepHeap() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	return lookAfter(heapInterval)
}

// lookAfter looks at the heap after each collection and at an interval. Collections
// are what matters when much comes at once: with a GOGC that fits an idle process
// garbage would grow to many times what is in use before the interval is over.
func lookAfter(interval time.Duration) (stop func()) {
	collected := make(chan struct{}, 1)
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		k := keeper{percent: 100}
		defer debug.SetGCPercent(debug.SetGCPercent(k.percent))
		tick := time.NewTicker(interval)
		defer tick.Stop()
		runtime.SetFinalizer(&bell{collected, ended}, (*bell).ring)
		percent, free := k.look(readHeap())
		for {
			if percent != 0 {
				debug.SetGCPercent(percent)
			}
			if free {
				debug.FreeOSMemory()
			}
			select {
			case <-tick.C:
				percent, free = k.look(readHeap())
			case <-collected:
				percent, free = k.room(readHeap().live), false
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-stopped
	}
}

// bell rings after each collection, which finds it to be garbage each time.
type bell struct {
	collected chan<- struct{}
	ended     <-chan struct{}
}

func (b *bell) ring() {
	select {
	case <-b.ended:
		return
	default:
	}
	select {
	case b.collected <- struct{}{}:
	default: // it has rung, and nobody has looked yet
	}
	runtime.SetFinalizer(b, (*bell).ring)
}

// heap is what the runtime tells of its memory, in bytes.
type heap struct {
	live      uint64 // in use when last collected
	occupied  uint64 // by objects, garbage among them
	free      uint64 // held for more of them
	allocated uint64 // since the process began
}

func readHeap() heap {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(s)
	return heap{s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64(), s[3].Value.Uint64()}
}

// keeper decides what becomes of the garbage.
type keeper struct {
	percent   int // as it was last set
	allocated uint64
	quiet     int // looks in a row
}

// room returns the GOGC to set, 0 for none.
func (k *keeper) room(live uint64) (percent int) {
	want := min(max(int(garbageRoom*100/max(live, 1)), minPercent), maxPercent)
	if math.Abs(float64(want-k.percent)) > float64(k.percent)/8 { // setting it stops the world for a moment
		k.percent, percent = want, want
	}
	return percent
}

// look returns the GOGC to set, 0 for none, and whether to collect now and give the
// memory back.
func (k *keeper) look(h heap) (percent int, free bool) {
	percent = k.room(h.live)
	if h.allocated-k.allocated < quietBytes {
		k.quiet++
	} else {
		k.quiet = 0
	}
	k.allocated = h.allocated
	spare := h.free
	if h.occupied > h.live {
		spare += h.occupied - h.live
	}
	if k.quiet >= quietLooks && spare >= max(giveBack, h.live/giveBackShare) {
		k.quiet = 0
		return percent, true
	}
	return percent, false
}
