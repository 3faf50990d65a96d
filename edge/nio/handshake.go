package nio

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// handshakes runs TLS handshakes on blocking connections, each in a goroutine.
//
// One that waits for its client costs memory and nothing else: it stands in
// nobody's way however slow the client is. What is short is processors. A handshake
// computes only while it has one of Config.Handshakes turns: it gets one when bytes
// have come, gives it back before it writes or waits for more, and addresses take
// turns. So one address, whether it is silent, slow or in a hurry, delays the others
// by a computation, and all of them leave processors to connections that are open.
//
// Config.HandshakeQueue bounds how many wait, for whatever; crowd.worst says which
// of them makes room.
type handshakes struct {
	loop *Loop

	mu        sync.Mutex
	crowd     crowd // those that wait
	computing int
	running   int           // goroutines
	none      chan struct{} // closed when none is running; nil: nobody waits for that
	stopped   bool
	wg        sync.WaitGroup
}

func (h *handshakes) init(l *Loop) {
	h.loop = l
	h.crowd.init()
}

// newcomer is a connection that was accepted and counted in.
type newcomer struct {
	listener *listener
	conn     net.Conn
	addr     netip.Addr
	since    time.Time

	// The rest is for its handshake, guarded by handshakes.mu.
	place                // in the crowd
	turn      chan error // its turn, or errGivenUp
	computing bool       // it has its turn
	answered  bool       // something was written
	gaveUp    failure    // why it was given up
}

// errGivenUp ends a handshake from within. The reason is newcomer.gaveUp.
var errGivenUp = errors.New("given up")

// add begins the handshake of n.
func (h *handshakes) add(n *newcomer) {
	if r := h.loop.gate.beginHandshake(n.addr); r != "" {
		h.loop.refuse(n, r)
		return
	}
	n.turn = make(chan error, 1)
	// A connection that cannot take a deadline is closed, and so is its handshake.
	_ = n.conn.SetDeadline(n.since.Add(h.loop.cfg.HandshakeTimeout))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		h.fail(n, failedClosing)
		return
	}
	h.crowd.add(n)
	if h.crowd.size > h.loop.cfg.HandshakeQueue {
		h.giveUp(h.crowd.worst(), failedCrowded)
	}
	h.running++
	h.wg.Go(func() { h.run(n) })
}

// run does the handshake of n and opens the connection.
func (h *handshakes) run(n *newcomer) {
	s := &secure{raw: &taker{Conn: n.conn, handshakes: h, newcomer: n}}
	s.tls = tls.Server(s, n.listener.tls)
	err := s.tls.Handshake()
	gaveUp := h.leave(n)
	switch {
	case err == nil:
		h.loop.gate.endHandshake(n.addr)
		h.loop.metrics.handshakeSeconds.Observe(time.Since(n.since).Seconds())
		h.loop.open(n, s)
	case gaveUp != "":
		h.fail(n, gaveUp)
	default:
		h.fail(n, whyFailed(err))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running--; h.running == 0 && h.none != nil {
		close(h.none)
		h.none = nil
	}
}

// taker is the connection of a handshake. It takes turns.
type taker struct {
	net.Conn
	handshakes *handshakes
	newcomer   *newcomer
}

// Read waits for the client, and then for a turn.
func (t *taker) Read(p []byte) (int, error) {
	t.handshakes.yield(t.newcomer, false)
	n, err := t.Conn.Read(p)
	if err == nil {
		err = t.handshakes.take(t.newcomer)
	}
	return n, err
}

// Write gives the turn back and does not ask for another: crypto/tls sends a
// flight of messages at once and has nothing to compute before the next Read.
func (t *taker) Write(p []byte) (int, error) {
	t.handshakes.yield(t.newcomer, true)
	return t.Conn.Write(p)
}

// yield gives back the turn of n, if it has one, with or without an answer to its
// client.
func (h *handshakes) yield(n *newcomer, answered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !n.computing {
		return
	}
	n.computing = false
	n.answered = n.answered || answered
	h.computing--
	h.crowd.add(n)
	if h.stopped {
		h.giveUp(n, failedClosing)
	}
	h.dispatch()
}

// take returns when n has its turn.
func (h *handshakes) take(n *newcomer) error {
	h.mu.Lock()
	if n.gaveUp != "" {
		h.mu.Unlock()
		return errGivenUp
	}
	h.crowd.wake(n)
	h.dispatch()
	h.mu.Unlock()
	if err := <-n.turn; err != nil {
		return err
	}
	if time.Since(n.since) >= h.loop.cfg.HandshakeTimeout {
		return os.ErrDeadlineExceeded // nothing is computed for a client that is late
	}
	return nil
}

// dispatch hands out the turns that are free.
func (h *handshakes) dispatch() {
	for h.computing < h.loop.cfg.Handshakes {
		n := h.crowd.next()
		if n == nil {
			return
		}
		h.computing++
		n.computing = true
		n.turn <- nil
	}
}

// giveUp ends the handshake of n, which waits.
func (h *handshakes) giveUp(n *newcomer, why failure) {
	ready := n.list == &n.line.ready
	h.crowd.remove(n)
	n.gaveUp = why
	if ready {
		n.turn <- errGivenUp
		return
	}
	_ = n.conn.SetDeadline(time.Unix(1, 0))
}

// leave is called when the handshake of n has come to its end. It returns why n was
// given up, if it was.
func (h *handshakes) leave(n *newcomer) failure {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case n.computing:
		n.computing = false
		h.computing--
		h.dispatch()
	case n.gaveUp == "":
		h.crowd.remove(n)
	}
	return n.gaveUp
}

// await returns when none is running, or when ctx ends.
func (h *handshakes) await(ctx context.Context) {
	h.mu.Lock()
	if h.running == 0 {
		h.mu.Unlock()
		return
	}
	if h.none == nil {
		h.none = make(chan struct{})
	}
	none := h.none
	h.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}

// fail closes a connection whose handshake came to nothing.
func (h *handshakes) fail(n *newcomer, why failure) {
	h.loop.metrics.handshakeFailures[why].Inc()
	h.loop.gate.endHandshake(n.addr)
	_ = n.conn.Close()
	h.loop.gate.leave(n.addr)
}

// stop ends the handshakes that are under way and waits for their goroutines.
func (h *handshakes) stop() {
	h.mu.Lock()
	h.stopped = true
	for n := h.crowd.worst(); n != nil; n = h.crowd.worst() {
		h.giveUp(n, failedClosing)
	}
	h.mu.Unlock()
	h.wg.Wait()
}

func whyFailed(err error) failure {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return failedTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failedGone
	default:
		return failedProtocol
	}
}
