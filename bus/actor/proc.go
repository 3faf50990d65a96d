package actor

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// proc is the part of an actor that does not depend on the type of its messages:
// its life from start to stop. It is the Runner that the pool runs.
type proc struct {
	cell   Cell
	status atomic.Uint32 // a status, for those who look from outside
	killed atomic.Bool   // what is left in the mailbox is to be failed

	name  string
	sys   *System
	pool  *Pool
	log   *slog.Logger
	typed typed
	done  chan struct{}

	// The rest belongs to the run, but for what mu guards.
	stopping bool
	lastTry  bool // start was called at a stop and has not made a value
	backoff  backoff
	pause    *time.Timer

	mu        sync.Mutex
	crashes   uint64
	restarts  uint64
	panicked  uint64 // messages failed by a panic
	discarded uint64 // messages failed at the stop
	last      string // reason of the last crash
	lastAt    time.Time
}

// typed is what proc asks of the part that knows the messages' type. Only the
// goroutine that holds the run calls it, but for close and mail.
type typed interface {
	begin() error
	receive(n int) (received int)
	crashed(err error)
	discard(err error)
	stopped()
	close()
	mail() mailStats
}

// Signals in the cell. Mail needs none: the run looks into the mailbox.
const (
	sigStop = 1 << iota // the mailbox is closed; stop when it is empty
	sigWake             // the pause before a restart is over
)

type status uint32

const (
	up status = iota
	restarting
	stopped
)

func (p *proc) init(s *System, name string, t typed) {
	p.name, p.sys, p.pool, p.typed = name, s, s.pool, t
	p.log = s.log.With("actor", name)
	p.done = make(chan struct{})
}

// begun ends the first start: the actor runs for the first time.
func (p *proc) begun() {
	p.backoff.started(time.Now())
	p.pool.Submit(p)
}

// abandon ends an actor whose first start failed.
func (p *proc) abandon() {
	p.typed.close()
	p.finish()
}

func (p *proc) stop() {
	p.typed.close()
	p.signal(sigStop)
}

// kill is stop without receiving what is in the mailbox.
func (p *proc) kill() {
	p.killed.Store(true)
	p.stop()
}

func (p *proc) signal(bits uint32) {
	if p.cell.Post(bits) {
		p.pool.Submit(p)
	}
}

// Run does what there is to do and rests. The status decides what that is, so a
// run that was ended by a panic is continued by the next.
func (p *proc) Run() {
	for left := batch; ; {
		bits := p.cell.Take()
		if bits&sigStop != 0 {
			p.stopping = true
		}
		if status(p.status.Load()) == restarting && (p.stopping || bits&sigWake != 0) {
			// A stop does not wait for the pause: what is in the mailbox is
			// received by a new value now or not at all.
			p.restart()
		}
		if status(p.status.Load()) == up {
			n := p.typed.receive(left)
			if left -= n; left == 0 {
				p.pool.Submit(p) // still holding the run: others have their turn
				return
			}
			if n > 0 && !p.killed.Load() {
				continue
			}
		}
		if p.stopping {
			p.finish()
			return // holding the run for good
		}
		if p.cell.Rest() {
			return
		}
	}
}

// Crashed is called by the pool after a panic in a run. What is contained
// elsewhere does not get here: it was in Receive, or a runtime.Goexit anywhere.
func (p *proc) Crashed(err error) {
	// Deferred, as a runtime.Goexit in what crash calls must not end the actor too.
	defer p.pool.Submit(p)
	p.crash(err)
}

// crash arranges for the next value and ends the one there is. It leaves the status
// at restarting.
func (p *proc) crash(err error) {
	now := time.Now()
	// The reason is put into words here: what was panicked with may be memory that
	// others write to, and is not kept.
	last := reason(err)
	p.mu.Lock()
	p.crashes++
	p.last, p.lastAt = last, now
	p.mu.Unlock()
	p.status.Store(uint32(restarting))
	var pause time.Duration
	if !p.stopping {
		pause = p.backoff.next(now)
		p.pause = time.AfterFunc(pause, func() { p.signal(sigWake) })
	}
	p.logCrash("Receive", err, slog.Duration("restart_in", pause))
	p.typed.crashed(err)
}

// restart makes the next value. When that fails, it is a crash too, and at a stop
// the end of trying.
func (p *proc) restart() {
	if p.pause != nil {
		p.pause.Stop()
	}
	if p.stopping && (p.lastTry || p.killed.Load() || p.typed.mail().length == 0) {
		return
	}
	p.lastTry = p.stopping
	if err := guard(p.typed.begin); err != nil {
		p.crash(err)
		return
	}
	p.lastTry = false
	p.mu.Lock()
	p.restarts++
	p.mu.Unlock()
	p.backoff.started(time.Now())
	p.status.Store(uint32(up))
}

// finish ends the actor: nobody is left waiting. A runtime.Goexit in what it calls
// is a crash, after which it begins again with what is left to do.
func (p *proc) finish() {
	if p.pause != nil {
		p.pause.Stop()
	}
	p.typed.discard(ErrStopped)
	p.typed.stopped()
	p.status.Store(uint32(stopped))
	p.sys.remove(p)
	close(p.done)
}

// dead counts a dead letter.
func (p *proc) dead(count *uint64) {
	p.mu.Lock()
	*count++
	p.mu.Unlock()
}

// contain calls f and logs a panic in it.
func (p *proc) contain(what string, f func()) {
	err := guard(func() error { f(); return nil })
	if err != nil {
		p.logCrash(what, err)
	}
}

func (p *proc) logCrash(where string, err error, attrs ...any) {
	attrs = append(attrs, slog.String("in", where), slog.Any("error", err))
	if pe, ok := errors.AsType[*PanicError](err); ok {
		attrs = append(attrs, slog.String("stack", string(pe.Stack)))
	}
	p.log.Error("actor crashed", attrs...)
}

// guard calls f and returns a panic in it as an error.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
