package actor

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"weak"
)

// TestMailboxModel does random steps on a mailbox and on a slice: the limit is
// exact at each moment, the order kept, and the taker is woken whenever it has
// found nothing.
func TestMailboxModel(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		limit := []int{1, 3, 8, 100, 5000}[rng.IntN(5)]
		b := &mailbox[int]{limit: limit}
		var model []int
		next, asleep := 0, false
		for range 3000 {
			// Fill and drain in turns, so that the ring grows and is given back.
			if rng.IntN(100) < []int{30, 70}[next/50%2] {
				wake, err := b.put(next, limit)
				if full := len(model) == limit; full != errors.Is(err, ErrFull) {
					t.Fatalf("seed %d: put with %d of %d: %v", seed, len(model), limit, err)
				}
				if err == nil {
					model = append(model, next)
				}
				if want := err == nil && asleep; wake != want {
					t.Fatalf("seed %d: put: wake = %v, want %v", seed, wake, want)
				}
				asleep = asleep && !wake
				next++
				continue
			}
			m, ok := b.take()
			if !ok {
				more := b.look(1 + rng.IntN(batch))
				if more != (len(model) > 0) {
					t.Fatalf("seed %d: look = %v with %d messages", seed, more, len(model))
				}
				asleep = !more
				continue
			}
			if len(model) == 0 || m != model[0] {
				t.Fatalf("seed %d: took %d, want the first of %v", seed, m, model)
			}
			model = model[1:]
		}
		if got := b.stats(); got.length != len(model) {
			t.Fatalf("seed %d: length %d, want %d", seed, got.length, len(model))
		}
	}
}

// TestMailboxSenders has several senders and one taker at the same time: nothing
// is lost or doubled, and what one sender put comes in its order.
func TestMailboxSenders(t *testing.T) {
	type mail struct{ from, n int }
	const senders, each = 4, 10000
	for _, limit := range []int{2, 64, 1 << 20} {
		b := &mailbox[mail]{limit: limit}
		var wg sync.WaitGroup
		for from := range senders {
			wg.Go(func() {
				for n := 0; n < each; {
					if _, err := b.put(mail{from, n}, limit); err != nil {
						runtime.Gosched()
						continue
					}
					n++
				}
			})
		}
		var next [senders]int
		for total := 0; total < senders*each; {
			m, ok := b.take()
			if !ok {
				if !b.look(batch) {
					runtime.Gosched()
				}
				continue
			}
			if m.n != next[m.from] {
				t.Fatalf("limit %d: from sender %d: %d, want %d", limit, m.from, m.n, next[m.from])
			}
			next[m.from]++
			total++
		}
		wg.Wait()
	}
}

func TestMailboxGivesMemoryBack(t *testing.T) {
	const n = 1 << 16
	type letter [64]byte // no tiny object, which would share its memory with others
	b := &mailbox[*letter]{limit: 2 * n}
	for range n {
		if _, err := b.put(&letter{}, b.limit); err != nil {
			t.Fatal(err)
		}
	}
	for b.look(batch) {
		for _, ok := b.take(); ok; _, ok = b.take() {
		}
	}
	if len(b.ring) != 0 {
		t.Errorf("an empty mailbox holds %d slots after a burst", len(b.ring))
	}
	// A ring of ordinary length is kept, and what was read can be collected.
	m := &letter{}
	gone := weak.Make(m)
	if _, err := b.put(m, b.limit); err != nil {
		t.Fatal(err)
	}
	b.look(batch)
	b.take()
	b.look(batch)
	if len(b.ring) == 0 {
		t.Error("the ring of a mailbox in ordinary use was given back")
	}
	m = nil
	runtime.GC()
	if gone.Value() != nil {
		t.Error("a message that was read is still held")
	}
	runtime.KeepAlive(b)
}

func TestMailboxClosed(t *testing.T) {
	b := &mailbox[int]{limit: 1}
	if _, err := b.put(1, 1); err != nil {
		t.Fatal(err)
	}
	b.close()
	if _, err := b.put(2, 1); !errors.Is(err, ErrStopped) {
		t.Errorf("put after close: %v, want ErrStopped, full or not", err)
	}
	b.look(batch)
	if m, ok := b.take(); !ok || m != 1 {
		t.Errorf("take after close = %v, %v, want what was put before", m, ok)
	}
}
