package bus

import "time"

const (
	// tick is how exact deadlines and pauses are: never early, and late by no
	// more than this (and what the scheduler adds).
	tick = 5 * time.Millisecond
	// wheelSize is the number of buckets, a power of two: ten seconds, so that
	// an ask with the usual deadline is met once, when it is due.
	wheelSize = 2048
)

// wheel is a hashed timing wheel (Varghese and Lauck, scheme 6) over the slots of
// a table: to set, to move and to cancel are a few stores. An ask further away
// than one turn stays in its bucket for as many turns as it takes.
type wheel struct {
	bucket [wheelSize]int32 // head of a list of slots
	now    int64            // the tick that was last passed
}

func (w *wheel) init() {
	for i := range w.bucket {
		w.bucket[i] = none
	}
}

// set makes slot i due at the given time, which replaces what was set before if
// armed says that something was.
func (w *wheel) set(t *table, i int32, at int64, armed bool) {
	if armed {
		w.cancel(t, i)
	}
	// Rounded up, so never early; and never a tick that was already passed.
	a := t.at(i)
	a.wake = max((at+int64(tick)-1)/int64(tick), w.now+1)
	head := &w.bucket[a.wake&(wheelSize-1)]
	a.prev, a.next = none, *head
	if *head != none {
		t.at(*head).prev = i
	}
	*head = i
}

// cancel takes slot i out.
func (w *wheel) cancel(t *table, i int32) {
	a := t.at(i)
	if a.next != none {
		t.at(a.next).prev = a.prev
	}
	if a.prev != none {
		t.at(a.prev).next = a.next
	} else {
		w.bucket[a.wake&(wheelSize-1)] = a.next
	}
}

// advance passes every tick up to now and appends the slots that are due to due.
// They are out of the wheel then.
func (w *wheel) advance(t *table, now int64, due []int32) []int32 {
	last := now / int64(tick)
	if t.used == 0 { // nothing can be in it
		w.now = max(w.now, last)
		return due
	}
	// After a long pause one turn meets every bucket.
	first := max(w.now+1, last-wheelSize+1)
	for k := first; k <= last; k++ {
		for i := w.bucket[k&(wheelSize-1)]; i != none; {
			a := t.at(i)
			next := a.next
			if a.wake <= last {
				w.cancel(t, i)
				due = append(due, i)
			}
			i = next
		}
	}
	w.now = max(w.now, last)
	return due
}
