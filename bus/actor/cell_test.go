package actor

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

func TestCell(t *testing.T) {
	t.Run("only the first post gets the run", func(t *testing.T) {
		var c Cell
		if !c.Post(1) {
			t.Error("Post on an idle cell = false")
		}
		if c.Post(2) {
			t.Error("Post on a busy cell = true")
		}
		if got := c.Take(); got != 3 {
			t.Errorf("Take = %b, want 11", got)
		}
		if !c.Rest() {
			t.Error("Rest with nothing posted = false")
		}
		if !c.Post(4) {
			t.Error("Post after Rest = false")
		}
		if got := c.Take(); got != 4 {
			t.Errorf("Take = %b, want 100", got)
		}
	})
	t.Run("a post after Take keeps it from resting", func(t *testing.T) {
		for _, b := range []uint32{0, 1, 1 << 29} {
			var c Cell
			c.Post(1)
			c.Take()
			c.Post(b)
			if c.Rest() {
				t.Errorf("Rest after Post(%#x) = true", b)
			}
			if got := c.Take(); got != b {
				t.Errorf("Take = %#x, want %#x", got, b)
			}
			if !c.Rest() {
				t.Errorf("Rest after Take of %#x = false", b)
			}
		}
	})
	t.Run("four bytes", func(t *testing.T) {
		if got := unsafe.Sizeof(Cell{}); got != 4 {
			t.Errorf("size = %d, want 4", got)
		}
	})
}

// mill counts, without any lock, what the posters left for it.
type mill struct {
	cell Cell
	left [8]atomic.Int64 // by bit: posted and not taken

	taken [8]int64 // the run's own
	inRun int
}

func (m *mill) Run() {
	for {
		if m.inRun++; m.inRun != 1 {
			panic("two runs at a time")
		}
		for set := m.cell.Take(); set != 0; set &= set - 1 {
			i := bits.TrailingZeros32(set)
			m.taken[i] += m.left[i].Swap(0)
		}
		m.inRun--
		if m.cell.Rest() {
			return
		}
	}
}

// TestCellTorture posts from many goroutines to few cells: no signal is lost and
// no two goroutines are in one run, which the race detector sees as well.
func TestCellTorture(t *testing.T) {
	const posters, posts = 8, 20000
	p := NewPool(4)
	mills := make([]mill, 3)
	var wg sync.WaitGroup
	for i := range posters {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for range posts {
				m, bit := &mills[rng.IntN(len(mills))], rng.IntN(8)
				m.left[bit].Add(1)
				if m.cell.Post(1 << bit) {
					if rng.IntN(8) == 0 {
						m.Run() // who holds the run may also run it
					} else {
						p.Submit(m)
					}
				}
			}
		})
	}
	wg.Wait()
	p.Close()
	total := int64(0)
	for i := range mills {
		for bit, n := range mills[i].taken {
			if left := mills[i].left[bit].Load(); left != 0 {
				t.Errorf("mill %d: %d posts of bit %d lost", i, left, bit)
			}
			total += n
		}
		if mills[i].cell.Busy() {
			t.Errorf("mill %d is busy at the end", i)
		}
	}
	if want := int64(posters * posts); total != want {
		t.Errorf("taken %d posts, want %d", total, want)
	}
}
