package actor

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"
)

// letter is what is known of one message, from its sender to its end.
type letter struct {
	to      *place
	from, n int // of one sender, in the order of sending; from is negative where there is no order
	id      int // the right answer
	do      deed
	asked   bool

	taken, refused, gone    atomic.Int32 // what Tell said: nil, ErrFull, ErrStopped
	received, failed        atomic.Int32 // by the actor; by the runtime
	answers, answered, late atomic.Int32 // outcomes of a question: all, answers of the actor's, deadlines
}

// order is a letter as an actor receives it.
type order struct {
	*letter
	Reply[int]
}

var (
	errChaos = errors.New("chaos")
	errPass  = errors.New("cannot be passed on")
)

func (s *scene) letter(to *place, from, n int, do deed) *letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &letter{to: to, from: from, n: n, id: len(s.letters), do: do}
	s.letters = append(s.letters, l)
	return l
}

// sent notes what Tell returned.
func (l *letter) sent(err error) {
	switch {
	case err == nil:
		l.taken.Add(1)
		l.to.taken.Add(1)
	case errors.Is(err, ErrFull):
		l.refused.Add(1)
	case errors.Is(err, ErrStopped):
		l.gone.Add(1)
		if !l.to.stopping.Load() {
			l.to.scene.t.Errorf("letter %d: refused by an actor that nobody has stopped", l.id)
		}
	default:
		l.to.scene.t.Errorf("letter %d: Tell: %v", l.id, err)
	}
}

// outcome notes what a question came to.
func (l *letter) outcome(got int, err error, took, timeout time.Duration) {
	t := l.to.scene.t
	l.answers.Add(1)
	if took > timeout {
		t.Errorf("letter %d: outcome after %v, later than the deadline of %v", l.id, took, timeout)
	}
	switch {
	case err == nil:
		l.answered.Add(1)
		if got != l.id {
			t.Errorf("letter %d: got the answer to %d", l.id, got)
		}
	case errors.Is(err, context.DeadlineExceeded):
		l.late.Add(1)
		if took != timeout {
			t.Errorf("letter %d: given up after %v of %v", l.id, took, timeout)
		}
	case errors.Is(err, ErrFull):
		l.refused.Add(1)
	case !errors.Is(err, ErrStopped) && !errors.Is(err, ErrPanic) && !errors.Is(err, errPass):
		t.Errorf("letter %d: %v", l.id, err)
	}
}

// Fail is called by the runtime.
func (o order) Fail(err error) {
	o.failed.Add(1)
	if o.received.Load() == 0 {
		o.to.left.Add(1)
		if !errors.Is(err, ErrStopped) {
			o.to.scene.t.Errorf("letter %d: failed with %v before it was received", o.id, err)
		}
		if !o.to.hurried.Load() {
			o.to.scene.t.Errorf("letter %d: discarded by an actor that had the time to receive it", o.id)
		}
	} else if !errors.Is(err, ErrPanic) {
		o.to.scene.t.Errorf("letter %d: failed with %v after it was received", o.id, err)
	}
	o.Reply.Fail(err)
	if o.do == rude {
		if o.received.Load() == 0 {
			o.to.crashes += ends(o.id)
		}
		end(o.id)
	}
}

// end ends whoever calls it, in one of two ways: a panic is contained where the
// runtime calls, a runtime.Goexit cannot be, which ends says by 1.
func end(n int) {
	if ends(n) == 1 {
		runtime.Goexit()
	}
	panic(errChaos)
}

func ends(n int) uint64 { return uint64(n % 2) }

// firstPlace is added to the number of a place that sends, to tell it from the
// goroutines that do.
const firstPlace = 100

// place is one actor over all its values.
type place struct {
	id        int
	scene     *scene
	slot      int
	reserved  int64
	limit     int64
	badStarts uint8 // a bit for each of eight starts in turn; not all are set
	manners   int   // 0 to 3: Crashed ends badly, 4 to 7: Stopped does, 8: both
	ref       atomic.Pointer[Ref[order]]
	stopping  atomic.Bool // somebody is about to stop it
	hurried   atomic.Bool // the stop may discard what waits: it has no patience, or no value
	open      atomic.Int64
	taken     atomic.Int64 // letters that Tell took
	left      atomic.Int64 // letters that left the mailbox

	// The rest belongs to the run. It is not atomic: the race detector sees two
	// goroutines in here.
	inside   int
	alive    *worker
	stopped  bool
	starts   int
	restarts uint64
	crashes  uint64
	inRow    int // crashes
	started  time.Time
	crashed  time.Time
	last     map[int]int // letter of each sender
	sent     int         // letters of its own
}

// worker is one value of an actor.
type worker struct {
	*place
	self *Ref[order]
	kept []order
}

// start checks that a crash is followed by its pause.
func (p *place) start(self *Ref[order]) (Actor[order], error) {
	now := time.Now()
	if p.starts > 0 {
		if p.alive != nil {
			p.scene.t.Error("a start while the value before it is alive")
		}
		if least := min(firstPause<<min(p.inRow, 20), maxPause) / 2; !p.stopping.Load() && now.Sub(p.crashed) < least {
			p.scene.t.Errorf("start after a pause of %v, %d crashes in a row", now.Sub(p.crashed), p.inRow)
		}
		p.inRow++
	}
	p.starts++
	if p.starts > 1 && p.badStarts>>(p.starts%8)&1 != 0 {
		p.crashed = now
		p.crashes++
		if p.stopping.Load() {
			p.hurried.Store(true)
		}
		switch p.starts % 3 {
		case 0:
			panic(errChaos)
		case 1:
			runtime.Goexit()
		}
		return nil, errChaos
	}
	if p.starts > 1 {
		p.restarts++
	}
	p.started = now
	p.alive = &worker{place: p, self: self}
	return p.alive, nil
}

func (w *worker) Receive(o order) {
	t := w.scene.t
	o.received.Add(1)
	w.left.Add(1)
	if w.inside++; w.inside != 1 {
		t.Error("two goroutines inside one actor")
	}
	defer func() { w.inside-- }()
	if w.alive != w {
		t.Errorf("letter %d is received by a value that is dead, or after Stopped", o.id)
	}
	if o.from >= 0 {
		if last, ok := w.last[o.from]; ok && o.n <= last {
			t.Errorf("from sender %d: %d after %d", o.from, o.n, last)
		}
		w.last[o.from] = o.n
	}
	switch o.do {
	case answerTwice:
		o.Answer(o.id)
		o.Answer(-1)
		o.Reply.Fail(errChaos)
	case keep:
		w.kept = append(w.kept, o)
		return
	case forget:
		return
	case slow:
		time.Sleep(20 * time.Millisecond)
	case pass:
		w.pass(o)
		return
	case askNext:
		w.askNext(o)
		return
	case panicFirst, rude:
		w.crash()
		panic(errChaos)
	case panicAfter:
		o.Answer(o.id)
		w.crash()
		panic("chaos")
	case exit:
		w.crash()
		runtime.Goexit()
	case stopSelf:
		w.place.stop()
	case outcome:
		w.open.Add(-1)
	}
	for _, k := range w.kept {
		k.Answer(k.id)
	}
	w.kept = nil
	o.Answer(o.id)
}

// crash notes that the value is about to panic.
func (p *place) crash() {
	p.crashes++
	p.crashed = time.Now()
	if p.crashed.Sub(p.started) >= healthy {
		p.inRow = 0
	}
}

// next is the actor after this one in the circle.
func (p *place) next() *place {
	s := p.scene
	if to := s.slots[(p.slot+1)%len(s.slots)].place.Load(); to != nil {
		return to
	}
	return p // the program is still spawning
}

// write is a letter of the actor's own.
func (w *worker) write(to *place, do deed) *letter {
	w.sent++
	return w.scene.letter(to, firstPlace+w.id, w.sent, do)
}

// pass has the next actor answer.
func (w *worker) pass(o order) {
	to := w.next()
	l := w.write(to, answer)
	l.id = o.id
	err := to.ref.Load().Tell(order{l, o.Reply})
	l.sent(err)
	if err != nil {
		o.Reply.Fail(errPass)
	}
}

// askNext asks the next actor, if there is room for its answer, which is told
// to itself.
func (w *worker) askNext(o order) {
	if w.open.Add(1) > w.reserved {
		w.open.Add(-1)
		o.Answer(o.id)
		return
	}
	to := w.next()
	l := w.write(to, answer)
	l.asked = true
	asked := time.Now()
	AskFunc(to.ref.Load(), time.Second, func(r Reply[int]) order { return order{l, r} }, func(got int, err error) {
		l.outcome(got, err, time.Since(asked), time.Second)
		back := w.scene.letter(w.place, -1, 0, outcome)
		back.id = o.id
		told := w.self.TellReserved(order{back, o.Reply})
		back.sent(told)
		if errors.Is(told, ErrFull) {
			w.scene.t.Errorf("letter %d: no reserved place for an outcome", back.id)
		}
		if told != nil {
			o.Reply.Fail(errPass)
		}
	})
}

func (w *worker) Crashed(err error) {
	if w.alive != w || w.stopped {
		w.scene.t.Error("Crashed of a value that is dead")
	}
	w.alive = nil
	w.fail(err)
	if w.manners < 4 || w.manners == 8 {
		end(w.manners)
	}
}

func (w *worker) Stopped() {
	if w.alive != w || w.stopped {
		w.scene.t.Error("Stopped of a value that is dead")
	}
	if n := w.self.Stats().Mailbox; n != 0 {
		w.scene.t.Errorf("Stopped while %d messages wait", n)
	}
	w.alive, w.stopped = nil, true
	w.fail(ErrStopped)
	if w.manners/4 == 1 || w.manners == 8 {
		w.crashes += ends(w.manners)
		end(w.manners)
	}
}

func (w *worker) fail(err error) {
	for _, k := range w.kept {
		k.Reply.Fail(err)
	}
	w.kept = nil
}

func (p *place) stop() {
	p.stopping.Store(true)
	p.ref.Load().Stop()
}

// endsWith notes that the system is about to be stopped, if it is.
func (p *place) endsWith(s *scene) {
	if s.done.Load() {
		p.hurried.CompareAndSwap(false, s.hurry)
		p.stopping.Store(true)
	}
}

// look looks at the actor from outside, at any moment.
func (p *place) look() {
	taken, left := p.taken.Load(), p.left.Load()
	if n := taken - left; n > p.limit+1 { // one is out of the mailbox and on its way
		p.scene.t.Errorf("%d messages were taken and have not left a mailbox of %d", n, p.limit)
	}
	i := p.ref.Load().Stats()
	if i.Mailbox > i.MailboxCap || int64(i.MailboxCap) != p.limit || i.Restarts > i.Crashes {
		p.scene.t.Errorf("%+v", i)
	}
}

// settled checks that nothing is under way any more: no message waits, no
// question is open, no actor still pauses.
func (s *scene) settled() {
	for _, pl := range s.places {
		if i := pl.ref.Load().Stats(); i.Mailbox != 0 || i.State != "stopped" && i.State != "idle" {
			s.t.Errorf("long after the last message: %+v", i)
		}
	}
	for _, l := range s.letters {
		if l.asked && l.answers.Load() != 1 {
			s.t.Errorf("letter %d (deed %d): %d outcomes long after the deadline", l.id, l.do, l.answers.Load())
		}
	}
}

// outcomes are how often what happened.
type outcomes struct {
	Answered, Late, Refused, Panicked, Discarded, Restarts, Failed, Spawned int
}

func (o *outcomes) add(more outcomes) {
	o.Answered += more.Answered
	o.Late += more.Late
	o.Refused += more.Refused
	o.Panicked += more.Panicked
	o.Discarded += more.Discarded
	o.Restarts += more.Restarts
	o.Failed += more.Failed
	o.Spawned += more.Spawned
}

// audit balances the books: each letter has one fate, and each actor's own figures
// are those of its letters.
func (s *scene) audit() (all outcomes) {
	type sums struct{ received, refused, panicked, discarded uint64 }
	books := map[*place]*sums{}
	for _, pl := range s.places {
		books[pl] = &sums{}
	}
	for _, l := range s.letters {
		taken, refused, gone := l.taken.Load(), l.refused.Load(), l.gone.Load()
		received, failed := l.received.Load(), l.failed.Load()
		if received > 1 || failed > 1 {
			s.t.Errorf("letter %d (deed %d): received %d times, failed %d times", l.id, l.do, received, failed)
		}
		if l.asked {
			if n := l.answers.Load(); n != 1 {
				s.t.Errorf("letter %d (deed %d): %d outcomes", l.id, l.do, n)
			}
		} else if taken+refused+gone != 1 {
			s.t.Errorf("letter %d: told %d times", l.id, taken+refused+gone)
		} else if handled := received+failed > 0; handled != (taken == 1) {
			s.t.Errorf("letter %d (deed %d): taken %d times, received %d, failed %d", l.id, l.do, taken, received, failed)
		}
		if refused > 0 && received+failed > 0 {
			s.t.Errorf("letter %d: refused, and received %d times, failed %d", l.id, received, failed)
		}
		if panics := l.do == panicFirst || l.do == rude || l.do == panicAfter || l.do == exit; received == 1 && panics != (failed == 1) {
			s.t.Errorf("letter %d (deed %d): failed %d times", l.id, l.do, failed)
		}
		b := books[l.to]
		b.refused += uint64(refused)
		b.received += uint64(received)
		if received == 0 {
			b.received += uint64(failed)
			b.discarded += uint64(failed)
		} else {
			b.panicked += uint64(failed)
		}
		all.Answered += int(l.answered.Load())
		all.Late += int(l.late.Load())
	}
	for _, pl := range s.places {
		if pl.alive != nil {
			s.t.Errorf("%s has ended without Stopped", pl.ref.Load().Name())
		}
		i, b := pl.ref.Load().Stats(), books[pl]
		if i.State != "stopped" || i.Mailbox != 0 || i.Received != b.received || i.Refused != b.refused ||
			i.DeadLetters != (DeadLetters{Panic: b.panicked, Stop: b.discarded}) ||
			i.Restarts != pl.restarts || i.Crashes != pl.crashes {
			s.t.Errorf("%+v\nbut its letters say %+v, %d restarts, %d crashes", i, *b, pl.restarts, pl.crashes)
		}
		all.Refused += int(b.refused)
		all.Panicked += int(b.panicked)
		all.Discarded += int(b.discarded)
		all.Restarts += int(pl.restarts)
		all.Failed += int(pl.crashes - b.panicked)
	}
	all.Spawned = len(s.places)
	return all
}
