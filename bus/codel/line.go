package codel

import "time"

// Backlog is a queue that says how much is in it and not since when. A
// nats.Subscription is one.
type Backlog interface {
	Pending() (messages, bytes int, err error)
}

// Line is a Gate for a Backlog. It measures the wait by marking the last in the queue:
// when that one is taken, it has waited at least since then.
type Line struct {
	Gate

	taken  uint64 // since the start
	mark   uint64 // the number of the marked one
	marked time.Time
	waited time.Duration // by the last that was marked, or longer
}

// Refuse says whether to refuse who was taken from the queue now.
func (l *Line) Refuse(now time.Time, queue Backlog) bool {
	if l.Target <= 0 {
		return false
	}
	l.taken++
	if l.taken >= l.mark {
		if l.mark > 0 {
			l.waited = now.Sub(l.marked)
		}
		n, _, _ := queue.Pending() // an error means that it is closed: nothing is pending
		if l.mark, l.marked = l.taken+uint64(n), now; n == 0 {
			l.mark, l.waited = 0, 0
		}
	}
	return l.Gate.Refuse(now, l.waited)
}
