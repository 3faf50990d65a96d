package actor

import "testing"

// nop is a cell with nothing to do.
type nop struct {
	cell Cell
}

func (n *nop) Run() {
	for {
		n.cell.Take()
		if n.cell.Rest() {
			return
		}
	}
}

func BenchmarkCell(b *testing.B) {
	b.Run("post+take+rest", func(b *testing.B) {
		b.ReportAllocs()
		var n nop
		for b.Loop() {
			if n.cell.Post(1) {
				n.Run()
			}
		}
	})
	b.Run("post-busy", func(b *testing.B) {
		b.ReportAllocs()
		var c Cell
		c.Post(1)
		for b.Loop() {
			c.Post(1)
		}
	})
}

// handoff says on a channel that it ran.
type handoff struct {
	cell Cell
	ran  chan struct{}
}

func (h *handoff) Run() {
	for {
		if h.cell.Take() != 0 {
			h.ran <- struct{}{}
		}
		if h.cell.Rest() {
			return
		}
	}
}

func BenchmarkPool(b *testing.B) {
	p := NewPool(0)
	defer p.Close()
	b.Run("round-trip", func(b *testing.B) {
		b.ReportAllocs()
		h := &handoff{ran: make(chan struct{})}
		for b.Loop() {
			if h.cell.Post(1) {
				p.Submit(h)
			}
			<-h.ran
		}
	})
	b.Run("throughput", func(b *testing.B) {
		b.ReportAllocs()
		cells := make([]nop, 1024)
		i := 0
		for b.Loop() {
			n := &cells[i%len(cells)]
			if n.cell.Post(1) {
				p.Submit(n)
			}
			i++
		}
	})
}
