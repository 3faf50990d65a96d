package nio

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Loop accepts connections and serves them. Its methods may be called from any
// goroutine.
type Loop struct {
	cfg        Config
	log        *slog.Logger
	metrics    *metrics
	gate       gate
	wheel      wheel
	handshakes handshakes
	drained    drainedList
	buffers    buffers
	unwritten  atomic.Int64 // bytes queued, all connections
	refusing   atomic.Bool  // see Refuse

	mu        sync.Mutex
	engine    *engine // nil until Run; constant afterwards
	listeners []*listener
	stopped   bool // no listener is added any more
	accepting sync.WaitGroup

	started   chan struct{} // closed when engine is there
	closeOnce sync.Once
	closeErr  error
	done      chan struct{} // closed when Close has finished
	timing    sync.WaitGroup
	halt      chan struct{} // ends timing
}

// New returns a loop that listens to nothing yet. It replaces nbio's logger, which
// is global to the process, by that of the first loop.
func New(cfg Config) (*Loop, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Loop{
		cfg:     cfg,
		log:     cfg.Logger,
		started: make(chan struct{}),
		done:    make(chan struct{}),
		halt:    make(chan struct{}),
	}
	l.metrics, err = newMetrics(cfg.Registerer, func() float64 { return float64(l.unwritten.Load()) })
	if err != nil {
		return nil, err
	}
	if n := maxFiles(); cfg.MaxConns >= n {
		l.log.Warn("more connections are allowed than files", "conns", cfg.MaxConns, "files", n)
	}
	routeLog(cfg.Logger)
	l.gate.init(cfg)
	l.wheel.init()
	l.drained.init()
	l.handshakes.init(l)
	return l, nil
}

// Run starts the pollers and accepts connections until Close has finished. When
// ctx is done it closes the loop at once. A clean end returns nil. It may be called
// once.
func (l *Loop) Run(ctx context.Context) error {
	if err := l.begin(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		_ = l.Close(ctx)
	case <-l.done:
	}
	return nil
}

// Started returns a channel that is closed once connections are accepted.
func (l *Loop) Started() <-chan struct{} { return l.started }

func (l *Loop) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.engine != nil {
		return errors.New("nio: Run was called before")
	}
	if l.stopped {
		return net.ErrClosed
	}
	e, err := startEngine(l)
	if err != nil {
		return err
	}
	l.engine = e
	close(l.started)
	l.timing.Go(l.keepTime)
	for _, s := range l.listeners {
		l.accepting.Go(func() { l.accept(s) })
	}
	return nil
}

// MaxConns is how many connections may be open, and how many of one address;
// the latter is negative for any number.
func (l *Loop) MaxConns() (all, ofOne int) { return l.cfg.MaxConns, l.cfg.MaxConnsPerAddr }

// Each calls f with every connection that has its handler. Connections may be
// closed and opened meanwhile.
func (l *Loop) Each(f func(*Conn)) {
	for _, c := range l.wheel.appendAll(nil) {
		if c.state.Load()&(stateReady|stateClosed) == stateReady {
			f(c)
		}
	}
}

// EachTimed calls f with the connections that have a handler and a time-out, and what
// is left until then. Connections whose time-out is changed meanwhile may be left out
// or come twice; for that, nobody has to wait until all were looked at.
func (l *Loop) EachTimed(f func(c *Conn, left time.Duration)) {
	var conns []timedConn
	for i := range slots {
		conns = l.wheel.appendSlot(i, conns[:0])
		for _, c := range conns {
			if c.state.Load()&(stateReady|stateClosed) == stateReady {
				f(c.Conn, time.Duration(c.left)*tick)
			}
		}
	}
}

// Refuse has new connections closed as soon as they are accepted, before a TLS
// handshake, until it is called with false.
//
// Not accepting them would be worse for who connects: the kernel goes on making
// connections, which wait in its queue where a balancer takes them for good ones, and
// then drops what a client sends until that gives up. One that is closed is tried
// elsewhere at once, and the listener is there again the moment it is wanted.
func (l *Loop) Refuse(refuse bool) { l.refusing.Store(refuse) }

// AwaitHandshakes waits until ctx ends or no TLS handshake runs or waits. What was
// accepted before the call has its session then, or was closed.
func (l *Loop) AwaitHandshakes(ctx context.Context) { l.handshakes.await(ctx) }

// Close ends the loop: it stops accepting, gives up handshakes, closes the
// connections except those that CloseAfterFlush was called for, waits for these
// until ctx is done, and stops the pollers. The error is that of ctx when
// connections had to be cut. When it returns, no goroutine of the loop is left
// and no handler is called any more.
func (l *Loop) Close(ctx context.Context) error {
	l.closeOnce.Do(func() {
		l.closeErr = l.close(ctx)
		close(l.done)
	})
	<-l.done
	return l.closeErr
}

func (l *Loop) close(ctx context.Context) error {
	l.stopAccepting(false)
	l.handshakes.stop()
	l.mu.Lock()
	e := l.engine
	l.mu.Unlock()
	if e == nil {
		return nil
	}
	// Nobody enters any more, so every connection is in the wheel.
	for _, c := range l.wheel.appendAll(nil) {
		if c.state.Load()&stateFlush == 0 {
			c.Close(net.ErrClosed)
		}
	}
	var err error
	empty := l.gate.drain()
	select {
	case <-empty:
	case <-ctx.Done():
		select {
		case <-empty:
		default:
			err = ctx.Err()
			for _, c := range l.wheel.appendAll(nil) {
				c.Close(net.ErrClosed)
			}
			<-empty
		}
	}
	e.stop()
	close(l.halt)
	l.timing.Wait()
	return err
}

// keepTime calls what is called neither by a poller nor by nbio.
func (l *Loop) keepTime() {
	t := time.NewTicker(tick)
	defer t.Stop()
	var conns []*Conn
	for {
		select {
		case <-t.C:
			conns = l.wheel.advance(l.wheel.elapsed(), conns[:0])
			for _, c := range conns {
				c.expire()
			}
		case <-l.drained.wake:
			conns = l.drained.take(conns[:0])
			for _, c := range conns {
				c.flush()
			}
		case <-l.halt:
			return
		}
		clear(conns)
	}
}

// drainedList is the connections whose queues have become empty. It is needed
// because nbio says so with its lock held. A connection is in it at most once.
type drainedList struct {
	mu    sync.Mutex
	conns []*Conn
	wake  chan struct{}
}

func (d *drainedList) init() { d.wake = make(chan struct{}, 1) }

func (d *drainedList) add(c *Conn) {
	if c.state.Or(stateListed)&stateListed != 0 {
		return // its turn is still to come
	}
	d.mu.Lock()
	d.conns = append(d.conns, c)
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *drainedList) take(conns []*Conn) []*Conn {
	d.mu.Lock()
	conns, d.conns = d.conns, conns
	d.mu.Unlock()
	for _, c := range conns {
		c.state.And(^stateListed)
	}
	return conns
}

// share is how many bytes a connection may have queued now: a part of what is free.
// However many peers do not read, that leaves room for those who do (dynamic
// thresholds, as switches share their buffers: Choudhury and Hahne, 1998).
func (l *Loop) share() int64 {
	const part = 4
	return (int64(l.cfg.MaxUnwrittenTotal) - l.unwritten.Load()) / part
}
