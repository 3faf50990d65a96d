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
	// maxElsewhere is the same for a worker that cannot answer while others may. The
	// queue group picks at random, so one such worker of four still ends one question
	// in 256.
	maxElsewhere = 3
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
	s.send(i, a, now, false)
	return true
}

// send sends the ask over the first link that is up, or holds it until one is. armed
// says whether the clock knows the ask.
func (s *shard) send(i int32, a *ask, now int64, armed bool) { s.sendExcept(nil, i, a, now, armed) }

// sendExcept is send over any link but one.
func (s *shard) sendExcept(lost *clientLink, i int32, a *ask, now int64, armed bool) {
	n := uint32(len(s.c.links))
	r := schema.Request{
		ID:       uint64(a.gen)<<32 | uint64(s.index(i)),
		Budget:   max(time.Duration(a.due-now), time.Millisecond),
		Question: a.question,
	}
	for k := range n {
		l := s.c.links[(s.number%s.c.active+k)%n]
		if l == lost || !l.Up() {
			continue
		}
		ln, seq := l.lanes[a.question.Method()], uint64(0)
		if a.missed == 0 {
			var wake bool
			if s.table.used == 1 {
				seq = ln.publish(s.index(i), r)
			}
			if seq == 0 {
				seq, wake = ln.add(s.index(i), r)
			}
			if wake {
				l.publishSoon()
			}
		} else if l.nc.PublishRequest(ln.subject, s.exactReply(l, i, a.gen), schema.AppendRequest(s.frame[:0], r)) != nil {
			continue // lost a moment ago; its watcher will say so
		}
		a.state, a.link, a.seq = sent, l.number, seq
		s.wheel.set(&s.table, i, a.due, armed)
		return
	}
	a.state = held
	s.wheel.set(&s.table, i, min(a.due, now+int64(s.c.patience())), armed)
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
	a.state = waiting
	s.wheel.set(&s.table, i, min(a.due, now+int64(pause)), true)
}

// finish ends the ask. inWheel says whether the clock still knows it.
func (s *shard) finish(i int32, a *ask, now int64, answer schema.Answer, inWheel bool) verdict {
	if inWheel {
		s.wheel.cancel(&s.table, i)
	}
	v := verdict{a.to, answer}
	s.counts.finished(answer, now-a.asked)
	s.table.put(i)
	return v
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
	if a.link == l.number && a.state == sent {
		l.lanes[a.question.Method()].confirm(a.seq)
	}
	if !a.question.Packed && !answer.Packed.IsZero() { // who asked could make nothing of it
		answer = schema.Answer{Err: errPacked}
	}
	if tries := triesAfter(answer.Err); tries > 0 {
		if a.state != sent {
			return v, false // a copy's refusal: another attempt is under way
		}
		pause := refusedPause + rand.N(3*refusedPause)
		if int(a.refused) < tries && now+int64(pause) < a.due {
			a.refused++
			s.counts.retries[retryRefused]++
			s.later(i, a, now, pause)
			return v, false
		}
	}
	return s.finish(i, a, now, answer, true), true
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
	default:
		return 0
	}
}

// missedAt takes a 503 that can mean the question with a place in l's lane.
func (s *shard) missedAt(l *clientLink, at blamed, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := int32(at.index / uint32(len(s.c.shards)))
	if a := s.table.at(i); a.state == sent && a.link == l.number && a.seq == at.seq {
		s.missedOne(i, a, now)
	} // else it is over since
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
		if a.state == sent && a.link == l.number {
			s.counts.retries[retryLink]++
			s.send(i, a, now, true)
		}
	})
}

// unsent sends a question over another link that l did not take.
func (s *shard) unsent(l *clientLink, i int32, gen uint32, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.table.find(i, gen); a != nil && a.state == sent && a.link == l.number && a.seq != 0 {
		s.counts.retries[retryLink]++
		s.sendExcept(l, i, a, now, true)
	}
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
