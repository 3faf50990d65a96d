package actor

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The benchmarks of this file compare an actor with what one would write without
// this package: a goroutine that receives from a channel with as many places.
const places = 1024

// crowds are the numbers of goroutines that send.
var crowds = []int{1, 2, 64}

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

// newCounter is a counter as an actor, and its Tell.
func newCounter(b *testing.B) (*counter, func(*ping) bool) {
	s := newSystem(b, Config{})
	c := &counter{done: make(chan struct{}, 1)}
	r := spawn(b, s, Options{Name: "counter", Mailbox: places}, Actor[*ping](c))
	return c, func(m *ping) bool { return r.Tell(m) == nil }
}

// newChannelCounter is a counter behind a channel, and its send, which does not
// block either.
func newChannelCounter(b *testing.B) (*counter, func(*ping) bool) {
	c := &counter{done: make(chan struct{}, 1)}
	ch := make(chan *ping, places)
	b.Cleanup(func() { close(ch) })
	go func() {
		for m := range ch {
			c.Receive(m)
		}
	}()
	return c, func(m *ping) bool {
		select {
		case ch <- m:
			return true
		default:
			return false
		}
	}
}

// BenchmarkTell is a message, told and received. A sender that finds no place lets
// others run and tries again.
func BenchmarkTell(b *testing.B) {
	for _, senders := range crowds {
		for _, way := range []struct {
			name string
			new  func(*testing.B) (*counter, func(*ping) bool)
		}{{"actor", newCounter}, {"channel", newChannelCounter}} {
			b.Run(fmt.Sprintf("senders=%d/%s", senders, way.name), func(b *testing.B) {
				c, tell := way.new(b)
				c.want.Store(int64(b.N))
				m := &ping{}
				crowd(b, senders, func() {
					for !tell(m) {
						runtime.Gosched()
					}
				})
				<-c.done
			})
		}
	}
}

// crowd calls f b.N times from so many goroutines.
func crowd(b *testing.B, senders int, f func()) {
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for range b.N*(i+1)/senders - b.N*i/senders {
				f()
			}
		})
	}
	wg.Wait()
}

// BenchmarkTellFull is being told that there is no place.
func BenchmarkTellFull(b *testing.B) {
	b.Run("actor", func(b *testing.B) {
		s := newSystem(b, Config{Runners: 1})
		release := make(chan struct{})
		defer close(release)
		s.pool.Submit(newJob(func() { <-release }))
		r := spawn(b, s, Options{Name: "full", Mailbox: places}, receive[*ping](func(*ping) {}))
		m := &ping{}
		for r.Tell(m) == nil {
		}
		b.ReportAllocs()
		for b.Loop() {
			if r.Tell(m) == nil {
				b.Fatal("there was a place")
			}
		}
	})
	b.Run("channel", func(b *testing.B) {
		ch := make(chan *ping, places)
		m := &ping{}
		for len(ch) < places {
			ch <- m
		}
		b.ReportAllocs()
		for b.Loop() {
			select {
			case ch <- m:
				b.Fatal("there was a place")
			default:
			}
		}
	})
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

// BenchmarkAsk is a question and its answer, each sender with one at a time.
func BenchmarkAsk(b *testing.B) {
	for _, senders := range crowds {
		b.Run(fmt.Sprintf("senders=%d/actor", senders), func(b *testing.B) {
			s := newSystem(b, Config{})
			r := spawn(b, s, Options{Name: "echo", Mailbox: places}, receive[query](func(q query) { q.Answer(q.n) }))
			ctx := b.Context()
			crowd(b, senders, func() {
				if n, err := Ask(ctx, r, newQuery(1)); n != 1 || err != nil {
					b.Error(n, err)
				}
			})
		})
		b.Run(fmt.Sprintf("senders=%d/channel", senders), func(b *testing.B) {
			type request struct {
				n     int
				reply chan int
			}
			requests := make(chan request, places)
			defer close(requests)
			go func() {
				for q := range requests {
					q.reply <- q.n
				}
			}()
			ask := func(ctx context.Context) (int, error) {
				q := request{1, make(chan int, 1)}
				select {
				case requests <- q:
				default:
					return 0, ErrFull
				}
				select {
				case n := <-q.reply:
					return n, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}
			ctx := b.Context()
			crowd(b, senders, func() {
				if n, err := ask(ctx); n != 1 || err != nil {
					b.Error(n, err)
				}
			})
		})
	}
}

// BenchmarkAskFunc is the same without a goroutine that waits, but with a deadline.
func BenchmarkAskFunc(b *testing.B) {
	s := newSystem(b, Config{})
	r := spawn(b, s, Options{Name: "echo"}, receive[query](func(q query) { q.Answer(q.n) }))
	b.ReportAllocs()
	done := make(chan struct{}, 1)
	for b.Loop() {
		AskFunc(r, time.Minute, newQuery(1), func(int, error) { done <- struct{}{} })
		<-done
	}
}
