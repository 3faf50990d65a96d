package nio

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/lesismal/nbio"
)

// OpenFunc makes the session of a new connection; with nil the connection is
// closed. It runs on the goroutine that accepts (or does the handshake), so it
// must return soon. Of the connection it may use SetTimeout, the addresses and
// TLS; it may keep it for later.
type OpenFunc func(c *Conn) Handler

// listener is one address that connections come in at.
type listener struct {
	net.Listener
	tls  *tls.Config // nil without TLS
	open OpenFunc
	done chan struct{} // closed with the listener

	extended int // how often its time to leave was, by accept
}

// Listen binds a TCP address and returns it with the port that was chosen.
// Connections are accepted once Run is called. With cfg they speak TLS, with
// http/1.1 as the protocol unless cfg names others; cfg must not be changed
// afterwards. What cfg.GetConfigForClient returns is used as it is.
func (l *Loop) Listen(addr string, cfg *tls.Config, open OpenFunc) (net.Addr, error) {
	lc := net.ListenConfig{
		KeepAliveConfig: net.KeepAliveConfig{
			Enable:   l.cfg.KeepAlive > 0,
			Idle:     l.cfg.KeepAlive,
			Interval: l.cfg.KeepAlive,
			Count:    2,
		},
	}
	if l.cfg.KeepAlive < 0 {
		lc.KeepAlive = -1
	}
	// Go listens with MPTCP where it can; the loop relies on how TCP sockets
	// report their events.
	lc.SetMultipathTCP(false)
	if l.cfg.ReusePort {
		lc.Control = reusePort
	}
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := l.serve(ln, cfg, open); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln.Addr(), nil
}

// serve takes a listener over.
func (l *Loop) serve(ln net.Listener, cfg *tls.Config, open OpenFunc) error {
	if cfg != nil {
		cfg = serverConfig(cfg)
	}
	s := &listener{Listener: ln, tls: cfg, open: open, done: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return net.ErrClosed
	}
	l.listeners = append(l.listeners, s)
	if l.engine != nil {
		l.accepting.Go(func() { l.accept(s) })
	}
	return nil
}

// StopAccepting closes the listeners. Connections that are in their TLS handshake
// still come to their session. It may be called more than once.
//
// Closing a listener resets the connections that only the kernel knows: those in
// the accept queue and those in the middle of TCP's handshake. Without ReusePort
// nobody else would serve them. With it, other processes go on at the same address,
// and no client may notice: handshakes are turned away first, then those that have
// begun are given leaveTime, and what they lead to is accepted.
func (l *Loop) StopAccepting() { l.stopAccepting(l.cfg.ReusePort) }

func (l *Loop) stopAccepting(gently bool) {
	l.mu.Lock()
	l.stopped = true
	listeners, running := l.listeners, l.engine != nil
	l.listeners = nil
	l.mu.Unlock()
	for _, s := range listeners {
		if gently && running && l.leave(s) {
			continue
		}
		close(s.done)
		_ = s.Close()
	}
	l.accepting.Wait()
}

const (
	// leaveTime is what TCP handshakes have to finish in, round trip included. It
	// is shorter than the second after which a client sends a lost SYN again
	// (RFC 6298 section 2.1), so one that was turned away finds another listener
	// the first time.
	leaveTime = 500 * time.Millisecond
	// leaveMore is added as long as connections wait to be accepted, at most
	// maxLeaveMore times.
	leaveMore    = 50 * time.Millisecond
	maxLeaveMore = 20
)

// leave makes the listener's accept end after leaveTime, and says whether it will.
func (l *Loop) leave(s *listener) bool {
	ln, ok := s.Listener.(*net.TCPListener)
	if !ok {
		return false
	}
	if err := turnAway(ln); err != nil {
		l.log.Warn("new connections may be lost to other processes at this address", "addr", s.Addr().String(), "err", err)
		return false
	}
	return ln.SetDeadline(time.Now().Add(leaveTime)) == nil
}

// left closes a listener when its time to leave has passed and nothing waits in it,
// else it gives it more time. It reports whether the listener is closed.
func (s *listener) left() bool {
	ln := s.Listener.(*net.TCPListener) // no other one has a deadline
	if s.extended < maxLeaveMore && waiting(ln) > 0 && ln.SetDeadline(time.Now().Add(leaveMore)) == nil {
		s.extended++
		return false
	}
	_ = ln.Close()
	return true
}

// Accepting is tried again after the first of these, doubled each time up to the
// second. It must not end for want of descriptors: they come back.
const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = time.Second
)

// accept runs until the listener is closed. Nothing in it waits for a peer.
func (l *Loop) accept(s *listener) {
	var backoff time.Duration
	for {
		conn, err := s.Accept()
		switch {
		case err == nil:
			backoff = 0
			l.admit(&newcomer{listener: s, conn: conn, addr: addrKey(conn.RemoteAddr()), since: time.Now()})
			continue
		case errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			if s.left() {
				return
			}
			continue
		case errors.Is(err, syscall.ECONNABORTED):
			continue // gone again before it was accepted
		}
		l.metrics.acceptErrors.Inc()
		if backoff == 0 {
			l.log.Warn("accepting failed and will be tried again", "addr", s.Addr().String(), "err", err)
		}
		backoff = min(max(2*backoff, minBackoff), maxBackoff)
		t := time.NewTimer(backoff)
		select {
		case <-t.C:
		case <-s.done:
			t.Stop()
			return
		}
	}
}

// admit counts a new connection in and passes it on.
func (l *Loop) admit(n *newcomer) {
	if l.refusing.Load() {
		l.metrics.refused[refusedOverload].Inc()
		_ = n.conn.Close()
		return
	}
	if r := l.gate.enter(n.addr); r != "" {
		l.metrics.refused[r].Inc()
		_ = n.conn.Close()
		return
	}
	if n.listener.tls != nil {
		l.handshakes.add(n)
		return
	}
	l.open(n, nil)
}

// refuse closes a connection that was counted in.
func (l *Loop) refuse(n *newcomer, r refusal) {
	l.metrics.refused[r].Inc()
	_ = n.conn.Close()
	l.gate.leave(n.addr)
}

// open gives a connection to its session and to nbio; s is nil without TLS.
func (l *Loop) open(n *newcomer, s *secure) {
	if s != nil {
		_ = n.conn.SetDeadline(time.Time{})
	}
	nb, err := nbio.NBConn(n.conn) // has a descriptor of its own, n.conn is closed
	if err != nil {
		l.refuse(n, refusedFiles)
		return
	}
	c := &Conn{nb: nb, loop: l, secure: s}
	if s != nil {
		s.raw, s.conn = nil, c
		s.reclaim()
	}
	l.wheel.add(c)
	if c.handler = n.listener.open(c); c.handler == nil {
		l.wheel.remove(c)
		n.conn = nb
		l.refuse(n, refusedHandler)
		return
	}
	l.metrics.open[c.transport()].Inc()
	nb.SetSession(c)
	if err := l.engine.adopt(nb); err != nil {
		l.metrics.refused[refusedFiles].Inc()
		if c.state.Load()&stateAdded == 0 {
			c.finish(err)
		}
		return
	}
	l.metrics.accepted[c.transport()].Inc()
	c.ready()
	if s != nil && c.enter() {
		// The client's first request can have come with the end of its handshake.
		c.handler.Readable()
		c.leave()
	}
}

func (c *Conn) transport() transport {
	if c.secure != nil {
		return overTLS
	}
	return plain
}

// forget is called when the handler of a connection was told of its end.
func (l *Loop) forget(c *Conn) {
	l.wheel.remove(c)
	if q := c.queued.Load(); q > 0 {
		c.settle(int(q))
		l.metrics.dropped.Add(float64(q))
	}
	l.metrics.open[c.transport()].Dec()
	l.gate.leave(addrKey(c.nb.RemoteAddr()))
}
