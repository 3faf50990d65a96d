package actor

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// ping is a message as the hot path sends them: a pointer.
type ping struct{ _ int }

// counter counts what it receives and says when it has reached want.
type counter struct {
	got  int
	want atomic.Int64
	done chan struct{}
}

func (c *counter) Receive(*ping) {
	c.got++
	if int64(c.got) == c.want.Load() {
		c.done <- struct{}{}
	}
}

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

// BenchmarkTell compares an actor with a goroutine that receives from a channel
// with as many places. Neither sender blocks: when there is no place it lets
// others run and tries again.
func BenchmarkTell(b *testing.B) {
	const places = 1024
	for _, producers := range []int{1, 8} {
		name := map[int]string{1: "one-producer", 8: "producers-8"}[producers]
		b.Run("actor/"+name, func(b *testing.B) {
			s := newSystem(b, Config{})
			c := &counter{done: make(chan struct{}, 1)}
			r := spawn(b, s, Options{Name: "counter", Mailbox: places}, Actor[*ping](c))
			flood(b, producers, c, func(m *ping) {
				for r.Tell(m) != nil {
					runtime.Gosched()
				}
			})
		})
		b.Run("channel/"+name, func(b *testing.B) {
			c := &counter{done: make(chan struct{}, 1)}
			ch := make(chan *ping, places)
			defer close(ch)
			go func() {
				for m := range ch {
					c.Receive(m)
				}
			}()
			flood(b, producers, c, func(m *ping) {
				for {
					select {
					case ch <- m:
						return
					default:
						runtime.Gosched()
					}
				}
			})
		})
	}
}

// flood sends b.N messages from the given number of goroutines and waits until c
// has counted them.
func flood(b *testing.B, producers int, c *counter, send func(*ping)) {
	b.ReportAllocs()
	c.want.Store(int64(b.N))
	m := &ping{}
	b.ResetTimer()
	for i := range producers {
		n := b.N / producers
		if i < b.N%producers {
			n++
		}
		go func() {
			for range n {
				send(m)
			}
		}()
	}
	<-c.done
}

// BenchmarkPingPong is one message to an idle actor and one back from it.
func BenchmarkPingPong(b *testing.B) {
	s := newSystem(b, Config{})
	c := &counter{done: make(chan struct{}, 1)}
	r := spawn(b, s, Options{Name: "counter"}, Actor[*ping](c))
	b.ReportAllocs()
	m := &ping{}
	n := int64(0)
	for b.Loop() {
		n++
		c.want.Store(n)
		if err := r.Tell(m); err != nil {
			b.Fatal(err)
		}
		<-c.done
	}
}

func BenchmarkAsk(b *testing.B) {
	s := newSystem(b, Config{})
	r := spawn(b, s, Options{Name: "echo"}, receive[query](func(q query) { q.Answer(q.n) }))
	b.Run("ask", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Ask(b.Context(), r, newQuery(1)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("askfunc", func(b *testing.B) {
		b.ReportAllocs()
		done := make(chan struct{}, 1)
		for b.Loop() {
			AskFunc(r, time.Minute, newQuery(1), func(int, error) { done <- struct{}{} })
			<-done
		}
	})
}
