package bus_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/schema"
)

func TestABlockHasItsWorker(t *testing.T) {
	const blocks = 100
	steadily(t, func() (wrong string) {
		f := newFleet(t, 3, bus.ClientConfig{})
		before := f.where(t, blocks)
		if again := f.where(t, blocks); !slices.Equal(before, again) {
			return "the same blocks were answered by others"
		}
		share := map[string]int{}
		for _, name := range before {
			share[name]++
		}
		if len(share) != 3 {
			return fmt.Sprintf("shares are %v", share)
		}
		newHerald(t, f.url, "new")
		f.wantKnown(t, 4)
		moved := 0
		for i, name := range f.where(t, blocks) {
			if name != before[i] {
				if moved++; name != "new" {
					return fmt.Sprintf("block %d went from %s to %s", i, before[i], name)
				}
			}
		}
		if moved < blocks/8 || moved > blocks/2 {
			return fmt.Sprintf("%d of %d blocks moved to the fourth worker", moved, blocks)
		}
		return ""
	})
}

// One of four answers late, and says in time that it lives.
func TestSlowWorkerIsAskedLittle(t *testing.T) {
	f := newFleet(t, 4, bus.ClientConfig{})
	slow := f.workers[2]
	slow.will(func(id uint64, q schema.Question, reply string) {
		time.AfterFunc(300*time.Millisecond, func() { slow.answer(id, q, reply) })
	})
	const asks = 20_000
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for n := range asks / 8 {
				ask(t, f, schema.Question{Block: schema.Number(uint64(n*8 + k))}, patience).want(schema.OK)
			}
		})
	}
	wg.Wait()
	if got := slow.asked.Load(); got > asks*3/100 {
		t.Errorf("the slow one was asked %d of %d", got, asks)
	} else {
		t.Logf("the slow one was asked %d of %d", got, asks)
	}
}

// A worker whom the server does not know is no reason to wait.
func TestGoneWorkerIsReplaced(t *testing.T) {
	f := newFleet(t, 2, bus.ClientConfig{})
	gone := f.workers[0]
	if err := gone.direct.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if err := gone.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, name := range f.where(t, 200) {
		if name != "w1" {
			t.Fatalf("answered by %s", name)
		}
	}
	if f.retries(t, "worker-lost") == 0 || f.retries(t, "no-workers") != 0 {
		t.Error("the queue group was asked")
	}
}

// With all of them gone the queue group is the last resort, and then the answer is
// that there are none.
func TestAllWorkersGone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, bus.ClientConfig{})
	for _, w := range f.workers {
		w.nc.Close()
	}
	o := ask(t, f, byNumber, patience)
	o.want(schema.NoWorkers)
	if o.took > patience/2 {
		t.Errorf("took %v", o.took)
	}
	newHerald(t, f.url, "new")
	eventually(t, "the new one answers", func() bool { return ask(t, f, byNumber, patience).wait().Err == nil })
}

func TestRefusedByOne(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code   schema.Code
		refuse int // how many of three
		want   schema.Code
		most   int64 // questions that one becomes
	}{
		{schema.Overloaded, 1, schema.OK, 2},
		{schema.Overloaded, 3, schema.Overloaded, 2},
		{schema.Unavailable, 2, schema.OK, 8},
		{schema.Draining, 2, schema.OK, 8},
		{schema.Internal, 1, schema.OK, 2},
		{schema.Internal, 3, schema.Internal, 2},
		{schema.Pruned, 1, schema.OK, 2},
		{schema.Pruned, 3, schema.Pruned, 2},
		{schema.Unsupported, 3, schema.Unsupported, 1},
	} {
		t.Run(fmt.Sprintf("%v by %d", tt.code, tt.refuse), func(t *testing.T) {
			f := newFleet(t, 3, bus.ClientConfig{})
			for _, w := range f.workers[:tt.refuse] {
				w.will(w.refuse(tt.code))
			}
			sum := func() (n int64) {
				for _, w := range f.workers {
					n += w.asked.Load()
				}
				return n
			}
			const asks = 50
			for n := range uint64(asks) {
				ask(t, f, schema.Question{Block: schema.Number(n)}, patience).want(tt.want)
			}
			if got, most := sum(), asks*tt.most+f.copies(t); got > most {
				t.Errorf("%d questions became %d, want %d at most", asks, got, most)
			}
		})
	}
}

// A worker that has no nodes, or leaves, is not asked.
func TestWorkersThatAreNotReady(t *testing.T) {
	f := newFleet(t, 3, bus.ClientConfig{})
	f.workers[0].change(func(l *bus.Load) { l.State = bus.Unready })
	f.workers[1].change(func(l *bus.Load) { l.State = bus.Leaving })
	f.wantKnown(t, 1)
	for _, name := range f.where(t, 50) {
		if name != "w2" {
			t.Fatalf("answered by %s", name)
		}
	}
	f.workers[0].change(func(l *bus.Load) { l.State = bus.Ready })
	f.wantKnown(t, 2)
}

// Nobody can make a client remember workers without end.
func TestWorkersAreBounded(t *testing.T) {
	f := newFleet(t, 1, bus.ClientConfig{})
	for i := range 1200 {
		name := fmt.Sprintf("x%d", i)
		b, err := json.Marshal(bus.Load{Worker: name, Network: network, State: bus.Unready})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.workers[0].nc.Publish("ommer.load."+name, b); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all were heard", func() bool { return f.Known() >= 1024 })
	f.where(t, 10)
	if got := f.Known(); got != 1024 {
		t.Errorf("%d workers are known", got)
	}
}
