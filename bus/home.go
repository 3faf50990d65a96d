package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// A worker takes the questions for any worker on each of its links, and those for
// itself on one, its home. In a cluster with a server that hangs, the others go on
// passing it what its subscriptions ask for; if the worker were subscribed there and
// elsewhere in one queue group, half of its questions would be lost. So the home is
// subscribed to without a group, and when it moves, a server that was left behind
// gets copies at most.
//
// The home moves when its link has lost the connection, when the server there is about
// to stop, and when the link is mute: it is connected, but does not bring back the
// announcements that the worker itself makes, while another link does. Edges learn by
// Load.Epoch that something may have been lost.

// overlap is how long a worker can be found at two homes when it moves without haste: the
// server that it moves to confirms its subscription before the others know of it.
const overlap = LoadInterval

// tend follows what becomes of the links until the server has left.
func (s *Server) tend() {
	tick := time.NewTicker(LoadInterval)
	defer tick.Stop()
	awake := time.Now()
	for {
		select {
		case <-s.stop:
			s.announce()
			for _, l := range s.links {
				close(l.words)
			}
			return
		case <-s.poked:
		case <-tick.C:
			s.service.refill()
			s.observe()
		}
		now := time.Now()
		late := now.Sub(awake) > 2*LoadInterval // it is this process that paused
		awake = now
		s.look(now, late)
		s.announce()
	}
}

// poke has the links looked at.
func (s *Server) poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}

// look deals with what has happened to the links.
func (s *Server) look(now time.Time, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if late {
		s.judgedOn = now
	}
	for _, l := range s.links {
		if n := l.losses.Load(); n != l.seen {
			l.seen = n
			if l.carried.Swap(false) || l == s.home {
				s.epoch++
			}
		}
	}
	if s.leaving.Load() {
		return
	}
	for _, l := range s.links {
		switch {
		case l.busy || !l.usable():
		case !l.has(shared):
			if err := s.serve(l); err != nil { // closed
				s.log.Warn("cannot subscribe", "link", l.number, "reason", reason(err))
			}
		case l.lamed():
			if to := s.refuge(l); to != nil {
				s.vacate(l, to)
			}
		case s.mute(l, now):
			s.desert(l, now)
		}
	}
	if h := s.home; h != nil && !h.usable() && !h.busy {
		if to := s.refuge(h); to != nil && s.move(to) {
			subs := h.take(own)
			s.moving.Go(func() { drop(subs) })
		}
	}
}

// refuge is a link to use instead of another one, preferably to a server that will
// stay. Nil means that there is none.
func (s *Server) refuge(from *serverLink) (found *serverLink) {
	for _, l := range s.links {
		if l == from || l.busy || !l.usable() {
			continue
		}
		if !l.lamed() {
			return l
		}
		if found == nil {
			found = l
		}
	}
	return found
}

// move makes a link the home. What is subscribed at the former one is the caller's to
// end. mu is held.
func (s *Server) move(to *serverLink) bool {
	if err := s.settle(to); err != nil { // closed
		drop(to.take(own))
		s.log.Warn("cannot move to another link", "link", to.number, "reason", reason(err))
		return false
	}
	s.log.Info("moved to another link", "from", s.home.number, "link", to.number)
	s.home = to
	return true
}

// vacate leaves a link whose server is about to stop, without losing a question: the
// worker can be found elsewhere before it can no longer be found here, answers what was
// on its way, and connects anew. mu is held.
func (s *Server) vacate(l, to *serverLink) {
	kinds := []kind{shared}
	if l == s.home && s.move(to) {
		kinds = append(kinds, own)
	}
	l.busy = true
	losses := l.losses.Load()
	subs := l.take(kinds...)
	s.moving.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), moveTimeout)
		defer cancel()
		alive, cancel := l.untilLost(ctx)
		defer cancel()
		// Errors are of lost connections: then there is less to wait for.
		_ = to.nc.FlushWithContext(alive)
		routed := time.NewTimer(overlap)
		defer routed.Stop()
		select {
		case <-routed.C:
		case <-alive.Done():
		}
		drain(alive, subs)
		if l.losses.Load() == losses && !s.leaving.Load() { // else there is no connection to give up
			l.avoid() // what is still being looked up is answered elsewhere
			_ = l.nc.FlushWithContext(alive)
			_ = l.nc.FlushWithContext(alive) // who had chosen this link has published by now
			l.renew()
		}
		s.mu.Lock()
		if len(kinds) > 1 {
			// A question that was routed in the moment in which the servers changed
			// over may have found neither.
			s.epoch++
		}
		l.busy = false
		s.mu.Unlock()
		s.poke()
	})
}

// mute says whether a link is silent although another one shows that announcements are
// made and passed on. mu is held.
func (s *Server) mute(l *serverLink, now time.Time) bool {
	if s.cfg.WorkerID == "" || now.Sub(l.forced) < forceInterval {
		return false
	}
	since := max(l.heard.Load(), l.changed.Load(), s.judgedOn.UnixNano())
	if now.UnixNano()-since <= int64(silence) {
		return false
	}
	for _, o := range s.links {
		if o != l && o.usable() && now.UnixNano()-o.heard.Load() <= int64(2*LoadInterval) {
			return true
		}
	}
	return false
}

// desert leaves a link that is mute. What is on its way there is lost. mu is held.
func (s *Server) desert(l *serverLink, now time.Time) {
	s.log.Warn("bus server does not pass on what is published, leaving it",
		"link", l.number, "server", redact(l.nc.ConnectedUrl()))
	l.forced, l.busy = now, true
	l.avoid()
	s.epoch++
	var subs []*subscription
	if l == s.home {
		if to := s.refuge(l); to != nil && s.move(to) {
			subs = l.take(own)
		}
	}
	s.moving.Go(func() { // either can be held up by the socket
		drop(subs)
		l.renew()
		s.mu.Lock()
		l.busy = false
		s.mu.Unlock()
		s.poke()
	})
}

// hear takes note of an announcement of this very worker.
func (s *Server) hear(l *serverLink, m *nats.Msg) {
	load, err := parseLoad(m.Subject, m.Data)
	switch {
	case err != nil, load.Network != s.cfg.Network: // one name may serve several networks
	case load.Instance == s.instance:
		l.heard.Store(time.Now().UnixNano())
	case load.State != Leaving && s.namesake.Add(1) > namesakes:
		// What a former process of that name has said last may still be on its way.
		s.namesake.Store(-int64(30 * time.Second / LoadInterval)) // and again in a while
		s.log.Warn("another worker has the name of this one: both are asked everything that either is, give each a --name of its own",
			"name", s.cfg.WorkerID, "version", load.Version)
	}
}

// namesakes is how many announcements of another worker in this one's name are taken for
// those of a predecessor.
const namesakes = 10
