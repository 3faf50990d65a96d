package overload

import (
	"sync/atomic"
	"time"
)

// A Lane is a queue of what is ready to run. Mark puts a mark behind what waits in it
// now, and has arrived called when its turn has come; arrived returns at once. It is
// not called again before.
type Lane struct {
	Name string
	Mark func(arrived func())
}

// interval is how long a delay must last to count.
const interval = time.Second

// queue measures how late what is in a lane is run. The figure is the smallest delay of
// the last interval: one mark that was not late shows that no queue stands there, and
// that what came late was a moment's.
type queue struct {
	Lane
	sent  time.Time    // when the last mark was sent
	late  atomic.Int64 // how late it was, in nanoseconds; out while it is on its way
	marks []mark       // of the last interval and the last one before it, oldest first
}

type mark struct {
	at   time.Time
	late time.Duration
}

const out = -1

// look takes what has become of the last mark, sends the next one, and returns how late
// the lane is.
func (q *queue) look(now time.Time) time.Duration {
	late := time.Duration(q.late.Load())
	switch {
	case q.sent.IsZero(): // nothing was late before
		q.note(mark{at: now})
		q.send(now)
	case late != out:
		q.note(mark{now, late})
		q.send(now)
	case now.Sub(q.sent) >= interval: // however late it will be
		q.note(mark{now, now.Sub(q.sent)})
	}
	least := q.marks[0].late
	for _, m := range q.marks[1:] {
		least = min(least, m.late)
	}
	return least
}

func (q *queue) send(now time.Time) {
	q.sent = now
	q.late.Store(out)
	q.Mark(func() { q.late.Store(int64(max(time.Since(now), 0))) })
}

func (q *queue) note(m mark) {
	q.marks = append(q.marks, m)
	old := 0
	for old+1 < len(q.marks) && m.at.Sub(q.marks[old+1].at) >= interval {
		old++
	}
	q.marks = append(q.marks[:0], q.marks[old:]...)
}
