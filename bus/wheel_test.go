package bus

import (
	"math/rand/v2"
	"testing"
	"time"
)

func newTable(limit int) (*table, *wheel) {
	w := new(wheel)
	w.init()
	return &table{limit: limit, free: none}, w
}

// TestWheelAgainstTheClock sets, moves and cancels at random and looks at what
// fires: nothing early, nothing later than the first look after its tick, nothing
// that was cancelled, everything once.
func TestWheelAgainstTheClock(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tab, w := newTable(1000)
	wants := map[int32]int64{}
	now := int64(0)
	for range 20000 {
		switch rng.IntN(4) {
		case 0, 1:
			i := tab.take()
			if i == none {
				break
			}
			wants[i] = now + rng.Int64N(int64(25*time.Second)) // more than two turns
			w.set(tab, i, wants[i], false)
		case 2:
			for i := range wants { // any
				if rng.IntN(2) == 0 {
					wants[i] = now + rng.Int64N(int64(time.Second))
					w.set(tab, i, wants[i], true)
				} else {
					w.cancel(tab, i)
					tab.put(i)
					delete(wants, i)
				}
				break
			}
		case 3:
			now += rng.Int64N(int64(40 * time.Millisecond))
			if rng.IntN(500) == 0 {
				now += int64(15 * time.Second) // the process was stopped
			}
			for _, i := range w.advance(tab, now, nil) {
				at, ok := wants[i]
				if !ok || at > now {
					t.Fatalf("slot %d fired at %d, wanted %d (%v)", i, now, at, ok)
				}
				delete(wants, i)
				tab.put(i)
			}
			for i, at := range wants {
				if at <= now-int64(tick) {
					t.Fatalf("slot %d did not fire: wanted %d, now %d", i, at, now)
				}
			}
		}
	}
}

func TestTableReusesAndTellsGenerationsApart(t *testing.T) {
	tab, _ := newTable(300)
	for range 300 {
		i := tab.take()
		tab.at(i).state = sent
	}
	if tab.take() != none {
		t.Fatal("more than the limit")
	}
	gen := tab.at(7).gen
	if tab.find(7, gen) == nil || tab.find(7, gen+1) != nil || tab.find(300, 0) != nil || tab.find(-1, 0) != nil {
		t.Error("find is wrong about what is in use")
	}
	tab.put(7)
	if tab.find(7, gen) != nil || tab.find(7, gen+1) != nil {
		t.Error("a free slot is found")
	}
	if i := tab.take(); i != 7 {
		t.Errorf("took %d, want the slot freed last", i)
	}
	tab.at(7).state = sent
	next := tab.at(7).gen
	if next == gen || tab.find(7, gen) != nil || tab.find(7, next) == nil {
		t.Error("the generation did not change")
	}
	tab.put(7)
	if tab.take(); tab.at(7).gen == next+(next-gen) {
		t.Error("the next generation can be told from the last two")
	}
}
