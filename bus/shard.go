package bus

import (
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ommer/ommer/schema"
)

const (
	// maxMissed is how often a question for which nobody was there is asked
	// again before it fails: about 5, 10, 20 and 40 ms apart, each up to twice
	// that, 75 to 150 ms in all.
	maxMissed = 4
	firstMiss = 5 * time.Millisecond
	// reunion is how long after a link came up a question does not give up: after
	// a server was lost, the workers are on their way to another one as well.
	reunion = 500 * time.Millisecond
	// maxRefused is how often a question that a worker had no room for is asked
	// again. Once: a retry finds the one worker that has room, many retries keep
	// all of them busy with refusing.
	maxRefused   = 1
	refusedPause = 2 * time.Millisecond
	// maxFailed is the same for a worker that has failed, or says that the history is
	// pruned: its node may be at fault, another worker may have an archive.
	maxFailed = 1
	// maxElsewhere is the same for a worker that cannot answer while others may. The
	// queue group picks at random, so one such worker of four still ends one question
	// in 256.
	maxElsewhere = 3
	// maxMoved is how often a question is asked again because its worker has gone, or
	// may have lost it. After that the queue group is asked, or its end is waited for.
	maxMoved = 3
	// outage is how long questions wait for a lost connection to come back; after
	// it they fail at once.
	outage = 2 * time.Second
)

// shard is a part of the table of asks with its own mutex and clock.
type shard struct {
	mu     sync.Mutex
	c      *Client
	number uint32
	closed bool
	table  table
	wheel  wheel
	frame  [schema.MaxRequestFrame]byte
	due    []int32
	counts counts
	credit int // for hedges

	_ [64]byte // the next shard's mutex is on another cache line
}

// verdict is an answer on its way out of the shard: Answered is called after the
// mutex is released.
type verdict struct {
	to     schema.Receiver
	answer schema.Answer
}

// add takes a question in and sends it. False means that there was no room.
func (s *shard) add(q schema.Question, now, due int64, to schema.Receiver) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := none
	if !s.closed {
		i = s.table.take()
	}
	if i == none {
		return false
	}
	a := s.table.at(i)
	a.to, a.question, a.asked, a.due = to, q, now, due
	s.credit = min(s.credit+1, hedgeCredit)
	s.send(i, a, now, false)
	return true
}

// send sends the ask to the worker that it belongs to, over the first link that is up,
// or holds it until one is. armed says whether the clock knows the ask.
func (s *shard) send(i int32, a *ask, now int64, armed bool) { s.sendExcept(nil, i, a, now, armed) }

// sendExcept is send over any link but one.
func (s *shard) sendExcept(lost *clientLink, i int32, a *ask, now int64, armed bool) {
	s.leave(a)
	p := s.c.fleet.everyone
	if a.missed == 0 && a.moved <= maxMoved {
		if q := s.c.fleet.ranking.Load().pick(a.question.Block, a.not, now); q != nil {
			p = q
		}
	}
	if !s.over(p, lost, i, a, now, true) && !s.over(p, lost, i, a, now, false) {
		a.state = held
		s.wheel.set(&s.table, i, min(a.due, now+int64(s.c.patience())), armed)
		return
	}
	wake := a.due
	if p != s.c.fleet.everyone {
		wake = min(wake, now+s.hedgePause(a, now))
	}
	s.wheel.set(&s.table, i, wake, armed)
}

// over sends the ask to a worker over the first link that is up, and false if there is
// none. Links whose server is leaving, or that do not lead to the worker, are the last
// choice.
func (s *shard) over(p *peer, lost *clientLink, i int32, a *ask, now int64, choosy bool) bool {
	n := uint32(len(s.c.links))
	for k := range n {
		l := s.c.links[(s.number%s.c.active+k)%n]
		if l == lost || !l.Up() || choosy && !(l.takes() && p.leads(l)) {
			continue
		}
		r := schema.Request{
			ID:       uint64(a.gen)<<32 | uint64(s.index(i)),
			Budget:   max(time.Duration(a.due-now), time.Millisecond),
			Question: a.question,
		}
		ln, seq := p.lanes[l.number][a.question.Method()], uint64(0)
		if a.missed == 0 {
			var wake bool
			if s.table.used == 1 {
				seq = ln.publish(s.index(i), r)
			}
			if seq == 0 {
				seq, wake = ln.add(s.index(i), r)
			}
			if wake {
				l.publishSoon(ln)
			}
		} else if l.nc.PublishRequest(ln.subject, s.exactReply(l, i, a.gen), schema.AppendRequest(s.frame[:0], r)) != nil {
			continue // lost a moment ago; its watcher will say so
		}
		a.state, a.lane, a.seq, a.sent = sent, ln, seq, now
		a.sends = min(a.sends+1, many)
		p.asked.Add(1)
		p.sent.Add(1)
		return true
	}
	return false
}

// leave notes that nothing more is expected on the ask's lane.
func (s *shard) leave(a *ask) {
	if a.lane != nil {
		a.lane.peer.asked.Add(-1)
		a.lane = nil
	}
}

// index is the slot's number among all shards, the lower half of an id.
func (s *shard) index(i int32) uint32 { return uint32(i)*uint32(len(s.c.shards)) + s.number }

func (s *shard) exactReply(l *clientLink, i int32, gen uint32) string {
	id := uint64(gen)<<32 | uint64(s.index(i))
	var raw [8]byte
	for k := range raw {
		raw[k] = byte(id >> (56 - 8*k))
	}
	return l.prefix + "x" + hex.EncodeToString(raw[:])
}

// later sends the ask again after a pause.
func (s *shard) later(i int32, a *ask, now int64, pause time.Duration) {
	s.leave(a)
	a.state = waiting
	s.wheel.set(&s.table, i, min(a.due, now+int64(pause)), true)
}

// finish ends the ask. inWheel says whether the clock still knows it.
func (s *shard) finish(i int32, a *ask, now int64, answer schema.Answer, inWheel bool) verdict {
	if inWheel {
		s.wheel.cancel(&s.table, i)
	}
	s.leave(a)
	s.endHedge(a)
	v := verdict{a.to, answer}
	s.counts.finished(answer, now-a.asked)
	s.table.put(i)
	return v
}

// endHedge notes that the worker that was asked first will not be waited for.
func (s *shard) endHedge(a *ask) {
	if a.slow != nil {
		a.slow.asked.Add(-1)
		a.slow = nil
	}
}

// answered takes a worker's answer. ok is false when nothing ends by it.
func (s *shard) answered(i int32, gen uint32, l *clientLink, answer schema.Answer, now int64) (v verdict, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.table.find(i, gen)
	if a == nil {
		s.counts.late++
		return v, false
	}
	// Of one that was sent twice nobody knows which of them this is the answer to.
	tries := triesAfter(answer.Err)
	if a.sends == 1 && a.state == sent && a.lane.link == l {
		a.lane.confirm(a.seq)
		if tries == 0 { // to refuse is quick
			a.lane.peer.sample(now - a.sent)
		}
	}
	if !a.question.Packed && !answer.Packed.IsZero() { // who asked could make nothing of it
		answer = schema.Answer{Err: errPacked}
	}
	if tries > 0 {
		if a.state != sent {
			return v, false // a copy's refusal: another attempt is under way
		}
		if a.slow != nil {
			s.endHedge(a) // one of two has refused, the other one may answer
			return v, false
		}
		if int(a.refused) < tries && s.elsewhere(i, a, answer.Err, now) {
			return v, false
		}
	}
	return s.finish(i, a, now, answer, true), true
}

// elsewhere asks another worker than the one that has refused: at once the other one
// of the block's two, else the queue group after a pause. False means that there is no
// time for that.
func (s *shard) elsewhere(i int32, a *ask, refusal *schema.Error, now int64) bool {
	p := a.lane.peer
	if refusal.Code == schema.Draining || refusal.Code == schema.Unavailable {
		s.c.fleet.shun(p, now)
	}
	if p != s.c.fleet.everyone && s.c.fleet.ranking.Load().pick(a.question.Block, p, now) != nil {
		a.refused++
		s.counts.retries[retryRefused]++
		a.not = p
		s.send(i, a, now, true)
		return true
	}
	if refusal.Code == schema.Internal || refusal.Code == schema.Pruned {
		return false // in the queue group it may well be the same one again
	}
	pause := refusedPause + rand.N(3*refusedPause)
	if now+int64(pause) >= a.due {
		return false
	}
	a.refused++
	s.counts.retries[retryRefused]++
	a.not = p
	s.later(i, a, now, pause)
	return true
}

// triesAfter is how often a question may be asked again after the answer e, 0 when e
// is its end. A worker that is full may stand for all of them, and asking again makes
// it worse; one that has lost its nodes or is leaving stands for itself.
func triesAfter(e *schema.Error) int {
	switch {
	case e == nil:
		return 0
	case e.Code == schema.Overloaded:
		return maxRefused
	case e.Code == schema.Draining, e.Code == schema.Unavailable:
		return maxElsewhere
	case e.Code == schema.Internal, e.Code == schema.Pruned:
		return maxFailed
	default:
		return 0
	}
}

// missedAt takes a 503 that can mean the question with a place in a lane.
func (s *shard) missedAt(ln *lane, at blamed, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := int32(at.index / uint32(len(s.c.shards)))
	a := s.table.at(i)
	switch {
	case a.state != sent || a.lane != ln || a.seq != at.seq: // it is over since
	case ln.peer == s.c.fleet.everyone:
		s.missedOne(i, a, now)
	default:
		s.move(i, a, ln.peer, now)
	}
}

// move asks again what a worker will not answer; not is the worker that is not to be
// asked, if any.
func (s *shard) move(i int32, a *ask, not *peer, now int64) {
	a.moved = min(a.moved+1, many)
	a.not = not
	s.counts.retries[retryGone]++
	s.send(i, a, now, true)
}

// rescue asks again what a worker has, which may have lost it: what was sent over one
// link, or over any.
func (s *shard) rescue(p *peer, over *clientLink, not *peer, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(func(i int32, a *ask) {
		if over == nil && a.slow == p {
			s.endHedge(a)
		}
		if a.state == sent && a.lane.peer == p && (over == nil || a.lane.link == over) && a.moved < maxMoved {
			s.move(i, a, not, now)
		}
	})
}

// missedExactly takes a 503 that names its question.
func (s *shard) missedExactly(i int32, gen uint32, l *clientLink, now int64) (v verdict, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.table.find(i, gen)
	if a == nil || a.state != sent || a.missed == 0 {
		return v, false
	}
	if a.missed >= maxMissed && l.upFor(time.Now()) > reunion {
		return s.finish(i, a, now, schema.Answer{Err: errNoWorkers}, true), true
	}
	s.missedOne(i, a, now)
	return v, false
}

func (s *shard) missedOne(i int32, a *ask, now int64) {
	a.missed = min(a.missed+1, maxMissed)
	pause := firstMiss << (a.missed - 1)
	s.counts.retries[retryNoWorkers]++
	s.later(i, a, now, pause+rand.N(pause))
}

// elapse moves the shard's clock and appends what ended to out.
func (s *shard) elapse(now int64, out []verdict) []verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = s.wheel.advance(&s.table, now, s.due[:0])
	for _, i := range s.due {
		a := s.table.at(i)
		switch {
		case a.due <= now && a.missed > 0 && a.state == waiting:
			out = append(out, s.finish(i, a, now, schema.Answer{Err: errNoWorkers}, false))
		case a.due <= now:
			out = append(out, s.finish(i, a, now, schema.Answer{Err: errTimeout}, false))
		case a.state == held && s.c.patience() == 0:
			out = append(out, s.finish(i, a, now, schema.Answer{Err: errNoLink}, false))
		case a.state == sent:
			s.hedge(i, a, now)
		default:
			s.send(i, a, now, false)
		}
	}
	return out
}

// each calls f for every ask in use.
func (s *shard) each(f func(i int32, a *ask)) {
	for i := range int32(s.table.made) {
		if a := s.table.at(i); a.state != free {
			f(i, a)
		}
	}
}

// linkDown sends what was on its way over a lost link again over another.
func (s *shard) linkDown(l *clientLink, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(func(i int32, a *ask) {
		if a.state == sent && a.lane.link == l {
			s.counts.retries[retryLink]++
			s.send(i, a, now, true)
		}
	})
}

// unsent sends a question over another link that l did not take.
func (s *shard) unsent(l *clientLink, i int32, gen uint32, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.table.find(i, gen); a != nil && a.state == sent && a.lane.link == l && a.seq != 0 {
		s.counts.retries[retryLink]++
		s.sendExcept(l, i, a, now, true)
	}
}

// waits says whether an answer is to come over a link.
func (s *shard) waits(l *clientLink) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := false
	s.each(func(_ int32, a *ask) { waits = waits || a.state == sent && a.lane.link == l })
	return waits
}

// linkUp sends what was held.
func (s *shard) linkUp(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(func(i int32, a *ask) {
		if a.state == held {
			s.send(i, a, now, true)
		}
	})
}

// shut ends everything and takes nothing more.
func (s *shard) shut(now int64, out []verdict) []verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.each(func(i int32, a *ask) {
		out = append(out, s.finish(i, a, now, schema.Answer{Err: errClosed}, true))
	})
	return out
}

func (s *shard) pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.used
}

// refuse counts a question that was answered without being asked.
func (s *shard) refuse(answer schema.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.finished(answer, 0)
}

// roundUp is the next power of two.
func roundUp(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }
