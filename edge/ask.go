package edge

import (
	"time"
)

// begin takes a parsed message. One of which nothing is to be asked is answered here
// and now: only lookups may wait, for only they are limited in number.
func (s *session) begin(x *exchange, w *scratch) {
	s.inFlight += x.lookups
	s.queued++
	if x.lookups == 0 {
		s.complete(x, w)
		return
	}
	x.unasked, x.deadline = x.lookups, time.Now().Add(s.node.cfg.Timeouts.Lookup)
	if s.waiting == nil {
		s.waiting = x
	} else {
		s.lastWaiting.behind = x
	}
	s.lastWaiting = x
}

// ask asks what waits for it, in the order in which it came, as far as the session's
// share and turn go. It reports whether more could be asked at once.
func (s *session) ask() (again bool) {
	if s.phase > speaksWS { // nobody would hear the answers
		s.waiting, s.lastWaiting = nil, nil
		return false
	}
	for left := maxAsked; s.waiting != nil; {
		x := s.waiting
		room := s.node.shares.room(x.key, s.slot, s.asked)
		n := int32(min(room, left, int(x.unasked)))
		if n <= 0 {
			return room > 0
		}
		left -= int(n)
		x.out += n
		s.asked += n
		s.node.shares.add(x.key, s.slot, n)
		x.ask(x.network.resolver, n)
		if x.unasked == 0 {
			if s.waiting = x.behind; s.waiting == nil {
				s.lastWaiting = nil
			}
			x.behind = nil
		}
		if x.awaited == 0 {
			x.await()
		}
	}
	return false
}

// back takes an exchange of which what it awaited has been answered, and reports
// whether that was the last of it.
func (s *session) back(x *exchange) (complete bool) {
	n := min(x.awaited, x.out)
	x.awaited = 0
	s.settle(x, n)
	if x.out > 0 {
		x.await()
		return false
	}
	return x.unasked == 0
}

// settle gives back the share that n answered questions took.
func (s *session) settle(x *exchange, n int32) {
	x.out -= n
	s.asked -= n
	s.node.shares.add(x.key, s.slot, -n)
}
