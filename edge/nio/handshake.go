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

// handshakes runs TLS handshakes on blocking connections, a bounded number at a
// time, in goroutines that end when nothing waits.
type handshakes struct {
	loop *Loop

	mu      sync.Mutex
	running int
	waiting []*newcomer // bounded by the gate
	active  map[*newcomer]struct{}
	none    chan struct{} // closed when none is running; nil: nobody waits for that
	stopped bool
	wg      sync.WaitGroup
}

func (h *handshakes) init(l *Loop) {
	h.loop = l
	h.active = map[*newcomer]struct{}{}
}

// newcomer is a connection that was accepted and counted in.
type newcomer struct {
	listener *listener
	conn     net.Conn
	addr     netip.Addr
	since    time.Time
}

// add has the handshake done now or later.
func (h *handshakes) add(n *newcomer) {
	if r := h.loop.gate.beginHandshake(n.addr); r != "" {
		h.loop.refuse(n, r)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stopped:
		h.fail(n, failedClosing)
	case h.running < h.loop.cfg.Handshakes:
		h.running++
		h.wg.Go(func() { h.run(n) })
	default:
		h.waiting = append(h.waiting, n)
	}
}

// run does one handshake after the other until none waits.
func (h *handshakes) run(n *newcomer) {
	for n != nil {
		h.shake(n)
		h.mu.Lock()
		n = nil
		if len(h.waiting) > 0 {
			n, h.waiting[0] = h.waiting[0], nil
			h.waiting = h.waiting[1:]
		} else {
			h.waiting = nil
			if h.running--; h.running == 0 && h.none != nil {
				close(h.none)
				h.none = nil
			}
		}
		h.mu.Unlock()
	}
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

// shake does the handshake of n and opens the connection.
func (h *handshakes) shake(n *newcomer) {
	if !h.begin(n) {
		h.fail(n, failedClosing)
		return
	}
	s := &secure{raw: n.conn}
	s.tls = tls.Server(s, n.listener.tls)
	err := s.tls.Handshake()
	h.end(n)
	if err != nil {
		h.fail(n, whyFailed(err))
		return
	}
	h.loop.gate.endHandshake(n.addr)
	h.loop.metrics.handshakeSeconds.Observe(time.Since(n.since).Seconds())
	h.loop.open(n, s)
}

// begin sets the deadline of the handshake, counted from when the connection was
// accepted, and says whether it may begin.
func (h *handshakes) begin(n *newcomer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false
	}
	h.active[n] = struct{}{}
	// A connection that cannot take a deadline is closed, and so is its handshake.
	_ = n.conn.SetDeadline(n.since.Add(h.loop.cfg.HandshakeTimeout))
	return true
}

func (h *handshakes) end(n *newcomer) {
	h.mu.Lock()
	delete(h.active, n)
	h.mu.Unlock()
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
	for _, n := range h.waiting {
		h.fail(n, failedClosing)
	}
	h.waiting = nil
	for n := range h.active {
		_ = n.conn.SetDeadline(time.Unix(1, 0))
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
