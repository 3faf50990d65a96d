package workers

import (
	"time"

	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/cache"
)

// sweepInterval is the least time between two looks at the deadlines of those who
// wait, and so how late a Timeout may be.
const sweepInterval = 10 * time.Millisecond

// shard is the actor that answers for its part of the blocks. All of it is touched by
// its Receive only.
type shard struct {
	pool *Pool
	slot *slot
	self *actor.Ref[message]

	kept   *cache.S3FIFO[schema.Selector, entry] // true for good
	recent *cache.S3FIFO[schema.Selector, entry] // true until entry.until

	fetches  map[schema.Selector]*fetch
	waiting  int       // asks in all of them
	wake     time.Time // when the timer is due, zero when it is not armed
	timer    *time.Timer
	farewell []*farewell // not empty once the pool stops
}

func newShard(p *Pool, s *slot, self *actor.Ref[message]) *shard {
	bytes := p.cfg.CacheBytes / int64(p.cfg.Shards)
	a := &shard{
		pool: p, slot: s, self: self,
		kept:    cache.New[schema.Selector, entry](bytes - bytes/recentShare),
		recent:  cache.New[schema.Selector, entry](bytes / recentShare),
		fetches: make(map[schema.Selector]*fetch),
	}
	// The timer is armed by Reset only. When the shard has stopped the wake-up finds
	// nobody, and it needs no answer.
	a.timer = time.AfterFunc(time.Hour, func() { _ = self.TellReserved(wakeUp{}) })
	a.timer.Stop()
	a.publish()
	return a
}

// Receive handles one message.
func (s *shard) Receive(m message) {
	switch m := m.(type) {
	case *ask:
		s.asked(m)
	case *fetched:
		s.fetched(m)
	case *known:
		s.keep(m.selector, m.entry)
	case wakeUp:
		s.wake = time.Time{}
		s.sweep(time.Now())
	case *listing:
		s.list(m)
	case *farewell:
		s.farewell = append(s.farewell, m)
		s.leaveIfDone()
	}
}

// asked answers a question or lets it wait.
func (s *shard) asked(a *ask) {
	now := time.Now()
	s.slot.gate.Took(now, a.told)
	if !a.deadline.After(now) {
		s.refuse(a, late)
		return
	}
	if e, ok := s.lookup(a.question.Block, now); ok {
		a.count.looked(sourceHit)
		a.answer(e.answer(a.question))
		s.pool.release(a)
		return
	}
	f := s.fetches[a.question.Block]
	switch {
	case s.stopping():
		s.refuse(a, leaving)
		return
	case s.waiting >= s.pool.cfg.perShard(s.pool.cfg.MaxWaiting):
		s.refuse(a, tooMany)
		return
	case f != nil:
		a.count.looked(sourceCoalesced)
	case s.pool.fetch(s.slot, a.question.Block, a.deadline):
		a.count.looked(sourceMiss)
		f = new(fetch)
		s.fetches[a.question.Block] = f
	default:
		s.refuse(a, tooManyAsks)
		return
	}
	f.waiting = append(f.waiting, a)
	s.waiting++
	s.slot.waiting.Store(int64(s.waiting))
	s.wakeBy(a.deadline, now)
}

func (s *shard) refuse(a *ask, e *schema.Error) {
	a.fail(e)
	s.pool.release(a)
}

// lookup finds a block in the cache.
func (s *shard) lookup(b schema.Selector, now time.Time) (e entry, ok bool) {
	if b.Kind() == schema.ByTag {
		return entry{}, false
	}
	if e, ok = s.kept.Get(b); ok {
		return e, true
	}
	e, ok = s.recent.Get(b)
	return e, ok && now.Before(e.until)
}

// fetched keeps what the source has said and answers those who wait for it.
func (s *shard) fetched(r *fetched) {
	r.settle()
	if r.err == nil {
		s.keep(r.selector, r.entry)
	}
	f := s.fetches[r.selector]
	if f == nil { // asked for by a shard that has crashed since
		return
	}
	if r.err != nil && r.cutOff && s.fetchAgain(r.selector, f) {
		return
	}
	s.settle(f, func(*ask) bool { return true }, func(a *ask) {
		if r.err != nil {
			a.fail(failure(r.err))
		} else {
			a.answer(r.entry.answer(a.question))
		}
	})
	delete(s.fetches, r.selector)
	s.leaveIfDone()
}

// fetchAgain asks once more for those whose deadlines are later than the one that the
// fetch was given, which is that of the first to ask.
func (s *shard) fetchAgain(b schema.Selector, f *fetch) bool {
	s.expire(f, time.Now())
	var deadline time.Time
	for _, a := range f.waiting {
		if a.deadline.After(deadline) {
			deadline = a.deadline
		}
	}
	return len(f.waiting) > 0 && !s.stopping() && s.pool.fetch(s.slot, b, deadline)
}

// keep puts an answer into the cache for as long as it is true.
func (s *shard) keep(b schema.Selector, e entry) {
	switch {
	case b.Kind() == schema.ByTag:
		return
	case e.until.IsZero():
		s.kept.Put(b, e, e.size())
	default:
		s.recent.Put(b, e, e.size())
	}
	s.publish()
}

// sweep tells those whose time is up, and sees to the next deadline.
func (s *shard) sweep(now time.Time) {
	var next time.Time
	for _, f := range s.fetches {
		s.expire(f, now)
		for _, a := range f.waiting {
			if next.IsZero() || a.deadline.Before(next) {
				next = a.deadline
			}
		}
	}
	if !next.IsZero() {
		s.wakeBy(next, now)
	}
	s.leaveIfDone()
}

// expire tells those in f whose time is up. The fetch goes on without them.
func (s *shard) expire(f *fetch, now time.Time) {
	s.settle(f, func(a *ask) bool { return !a.deadline.After(now) }, func(a *ask) { a.fail(late) })
}

// settle answers those in f who are due and takes them out. Each is taken out before
// it is answered, so that nobody is answered twice if a Receiver panics.
func (s *shard) settle(f *fetch, due func(*ask) bool, answer func(*ask)) {
	for i := 0; i < len(f.waiting); {
		a := f.waiting[i]
		if !due(a) {
			i++
			continue
		}
		last := len(f.waiting) - 1
		f.waiting[i], f.waiting[last] = f.waiting[last], nil
		f.waiting = f.waiting[:last]
		s.waiting--
		answer(a)
		s.pool.release(a)
	}
	s.slot.waiting.Store(int64(s.waiting))
}

// wakeBy makes sure that the shard is woken soon after a deadline.
func (s *shard) wakeBy(deadline, now time.Time) {
	if earliest := now.Add(sweepInterval); deadline.Before(earliest) {
		deadline = earliest
	}
	if s.wake.IsZero() || deadline.Before(s.wake) {
		s.wake = deadline
		s.timer.Reset(deadline.Sub(now))
	}
}

// leaveIfDone says farewell once nobody waits.
func (s *shard) leaveIfDone() {
	if s.waiting > 0 {
		return
	}
	for _, f := range s.farewell {
		f.close()
	}
}

func (s *shard) stopping() bool { return len(s.farewell) > 0 }

// publish shows the state of the cache to the metrics.
func (s *shard) publish() {
	s.slot.entries.Store(int64(s.kept.Len() + s.recent.Len()))
	s.slot.bytes.Store(s.kept.Bytes() + s.recent.Bytes())
	s.slot.limit.Store(s.kept.Max() + s.recent.Max())
	s.slot.full.Store(s.kept.Bytes() >= s.kept.Max()-s.kept.Max()/warmMargin)
	s.slot.evicted.Store(s.slot.evictedBefore + s.kept.Evicted() + s.recent.Evicted())
}

// Crashed fails those who wait. The cache is lost with the shard.
func (s *shard) Crashed(err error) { s.abandon(failure(err)) }

// Stopped sends away those who still wait.
func (s *shard) Stopped() { s.abandon(leaving) }

func (s *shard) abandon(e *schema.Error) {
	s.timer.Stop()
	for _, f := range s.fetches {
		for len(f.waiting) > 0 {
			s.failAll(f, e)
		}
	}
	clear(s.fetches)
	s.slot.evictedBefore += s.kept.Evicted() + s.recent.Evicted()
	s.leaveIfDone()
}

// failAll fails those in f, up to one whose Receiver panics: that must not keep the
// others from their answer.
func (s *shard) failAll(f *fetch, e *schema.Error) {
	defer func() {
		if v := recover(); v != nil {
			s.pool.cfg.Logger.Error("panic while answering", "panic", v)
		}
	}()
	s.settle(f, func(*ask) bool { return true }, func(a *ask) { a.fail(e) })
}
