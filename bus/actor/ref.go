package actor

import (
	"errors"
	"fmt"
)

// Ref is the address of an actor. It stays valid over restarts and after the
// stop. All methods may be called from any goroutine, the actor's own included.
type Ref[M any] struct {
	proc  proc
	box   mailbox[M]
	start func(self *Ref[M]) (Actor[M], error)

	// The rest belongs to the run.
	actor     Actor[M] // nil before the first start and between crash and restart
	current   M        // the message being received
	receiving bool     // Receive was called and has not returned
}

// Spawn starts an actor and returns its address. start makes the actor's value:
// once now, on the caller's goroutine, and again after every panic, on the pool;
// it must not block. When the first start fails, so does Spawn. start is given
// the actor's own address, which accepts messages already; they are received
// after it has returned.
//
// It returns ErrName, ErrStopped after System.Stop, an error of a setting out of
// range, or what start failed with.
func Spawn[M any](s *System, o Options, start func(self *Ref[M]) (Actor[M], error)) (*Ref[M], error) {
	if o.Mailbox < 0 || o.Reserved < 0 {
		return nil, fmt.Errorf("actor %q: negative size of a mailbox", o.Name)
	}
	if o.Mailbox == 0 {
		o.Mailbox = DefaultMailbox
	}
	r := &Ref[M]{start: start}
	r.box.limit, r.box.reserved = o.Mailbox, o.Reserved
	r.proc.init(s, o.Name, (*body[M])(r))
	r.proc.cell.Post(0) // hold the run until start has returned
	if err := s.add(&r.proc); err != nil {
		return nil, fmt.Errorf("actor %q: %w", o.Name, err)
	}
	begun := false
	defer func() { // also when start ends the goroutine, as t.FailNow does
		if !begun {
			r.proc.abandon()
		}
	}()
	if err := guard((*body[M])(r).begin); err != nil {
		return nil, fmt.Errorf("actor %q: start: %w", o.Name, err)
	}
	begun = true
	r.proc.begun()
	return r, nil
}

// Tell puts m in the mailbox. It never blocks. It returns nil, ErrFull or
// ErrStopped; with an error the message was not taken and stays the caller's.
// Messages of one goroutine are received in the order in which it told them.
func (r *Ref[M]) Tell(m M) error {
	return r.tell(m, r.box.limit)
}

// TellReserved is Tell with the reserved places of the mailbox as well. It is for
// answers to what the actor itself asked: as long as no more than
// Options.Reserved such questions are open, an answer always finds room.
func (r *Ref[M]) TellReserved(m M) error {
	return r.tell(m, r.box.limit+r.box.reserved)
}

func (r *Ref[M]) tell(m M, limit int) error {
	wake, err := r.box.put(m, limit)
	if wake && r.proc.cell.Post(0) {
		r.proc.pool.Submit(&r.proc)
	}
	return err
}

// Stop asks the actor to stop and returns at once: new mail is refused, what is
// in the mailbox is received, then Stopped is called. Wait on Done for the end.
func (r *Ref[M]) Stop() { r.proc.stop() }

// Done is closed when the actor has stopped.
func (r *Ref[M]) Done() <-chan struct{} { return r.proc.done }

// Name returns the name that the actor was spawned with.
func (r *Ref[M]) Name() string { return r.proc.name }

// Stats returns what System.Actors tells about this actor, also after its stop.
func (r *Ref[M]) Stats() Info { return r.proc.info() }

// body is the part of an actor that knows the type of its messages, as proc
// calls it. It is a Ref under a name whose methods are not the user's to call.
type body[M any] Ref[M]

var errNoActor = errors.New("start returned neither an actor nor an error")

// begin makes the actor's value.
func (r *body[M]) begin() error {
	a, err := r.start((*Ref[M])(r))
	if err != nil {
		return err
	}
	if a == nil {
		return errNoActor
	}
	r.actor = a
	return nil
}

// receive receives at most n messages and returns how many there were. A panic in
// one passes through it; the next call goes on after that message.
func (r *body[M]) receive(n int) (received int) {
	if !r.box.look(n) {
		return 0
	}
	for !r.proc.killed.Load() {
		m, ok := r.box.take()
		if !ok {
			break
		}
		received++
		r.current, r.receiving = m, true
		r.actor.Receive(m)
	}
	var zero M
	r.current, r.receiving = zero, false
	return received
}

// crashed drops the dead value, and tells it and the message.
func (r *body[M]) crashed(err error) {
	var zero M
	m, a, received := r.current, r.actor, r.receiving
	r.current, r.actor, r.receiving = zero, nil, false
	if c, ok := a.(Crasher); ok { // deferred, in case that Fail ends the goroutine
		defer r.proc.contain("Crashed", func() { c.Crashed(err) })
	}
	if received {
		r.proc.dead(&r.proc.panicked)
		r.fail(m, err)
	}
}

// discard fails what is in the mailbox.
func (r *body[M]) discard(err error) {
	for r.box.look(batch) {
		for m, ok := r.box.take(); ok; m, ok = r.box.take() {
			r.proc.dead(&r.proc.discarded)
			r.fail(m, err)
		}
	}
}

func (r *body[M]) fail(m M, err error) {
	if f, ok := any(m).(Failer); ok {
		r.proc.contain("Fail", func() { f.Fail(err) })
	}
}

// stopped makes the last call to the actor, if there is one.
func (r *body[M]) stopped() {
	a := r.actor
	r.actor = nil
	if s, ok := a.(Stopper); ok {
		r.proc.contain("Stopped", s.Stopped)
	}
}

func (r *body[M]) close() { r.box.close() }

func (r *body[M]) mail() mailStats { return r.box.stats() }
