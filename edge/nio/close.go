package nio

import (
	"errors"
	"io"
	"syscall"
)

// Close ends the connection at once; what is queued is dropped. Closed is called
// with err, which may be nil. Only the first call counts.
func (c *Conn) Close(err error) {
	c.nb.Lock()
	defer c.nb.Unlock()
	if gone, _ := c.nb.IsClosed(); gone || c.state.Load()&stateAbort != 0 {
		return
	}
	c.err = err
	if c.state.Or(stateAbort)&stateReady != 0 {
		c.hangUp()
	}
}

// ready is called when the connection belongs to its poller, and catches up on a
// Close that came before.
func (c *Conn) ready() {
	if c.state.Or(stateReady)&stateAbort == 0 {
		return
	}
	c.nb.Lock()
	defer c.nb.Unlock()
	if gone, _ := c.nb.IsClosed(); !gone {
		c.hangUp()
	}
}

// hangUp makes the poller close the connection, with nb's lock held so that the
// descriptor is still its own. Errors can be ignored: they mean that the peer was
// faster, and its reset is an event as well.
func (c *Conn) hangUp() { _ = syscall.Shutdown(c.nb.Hash(), syscall.SHUT_RDWR) }

// CloseAfterFlush ends the connection once the peer has been sent everything that
// was written, at most Config.FlushTimeout from now, and with TLS a close_notify
// behind it. Then the sending side is shut down, and for up to
// Config.LingerTimeout what the peer still sends is thrown away: closing a socket
// that has unread bytes resets it, and the reset can destroy the answer on its way
// (RFC 9112 section 9.6).
func (c *Conn) CloseAfterFlush() {
	if c.state.Load()&stateEnding != 0 {
		return
	}
	if c.secure != nil {
		// An error is one of the connection, which then ends anyway.
		_ = c.secure.tls.CloseWrite()
	}
	c.loop.wheel.set(c, c.loop.cfg.FlushTimeout)
	c.state.Or(stateFlush | stateOwed)
	if c.queued.Load() == 0 {
		c.flushed()
	}
}

// flushed shuts the sending side down, once.
func (c *Conn) flushed() {
	if c.queued.Load() > 0 || c.state.Or(stateShut)&stateShut != 0 {
		return
	}
	c.loop.wheel.set(c, c.loop.cfg.LingerTimeout)
	c.nb.Lock()
	defer c.nb.Unlock()
	if gone, _ := c.nb.IsClosed(); !gone {
		// This is an event too, so the poller looks at what is there to be
		// thrown away, or at the hang-up when the peer has shut down its side.
		_ = syscall.Shutdown(c.nb.Hash(), syscall.SHUT_WR)
	}
}

// lingerBuffer is the size of each poller's buffer for what is thrown away.
const lingerBuffer = 16 << 10

// linger reads and throws away. It is called by the poller.
func (c *Conn) linger() {
	buf := c.loop.engine.PollerBuffer(c.nb)
	for {
		n, err := c.nb.Read(buf)
		switch {
		case n > 0:
			if c.lingered += int32(n); c.lingered > lingerBytes {
				_ = c.nb.CloseWithError(nil)
				return
			}
		case err == nil:
			_ = c.nb.CloseWithError(nil)
			return
		case errors.Is(err, syscall.EAGAIN):
			return
		case !errors.Is(err, syscall.EINTR):
			_ = c.nb.CloseWithError(err)
			return
		}
	}
}

// expire is called by the loop when the connection's time-out has passed.
func (c *Conn) expire() {
	switch s := c.state.Load(); {
	case s&stateAdded == 0:
		c.loop.wheel.set(c, tick) // its session is still being opened
	case s&stateShut != 0:
		c.Close(nil)
	case s&stateFlush != 0:
		c.Close(ErrFlushTimeout)
	case c.enter():
		c.handler.Expired()
		c.leave()
	}
}

// flush is called by the loop when everything that was queued has been written.
func (c *Conn) flush() {
	switch {
	case c.state.Load()&stateFlush != 0:
		c.flushed()
	case c.enter():
		c.handler.Drained()
		c.leave()
	}
}

// finish is called once, when the socket is gone or could not be added.
func (c *Conn) finish(err error) {
	switch s := c.state.Load(); {
	case s&stateAbort != 0: // c.err says why
	case s&stateShut != 0:
		c.err = nil
	case err == nil:
		c.err = io.EOF
	default:
		c.err = err
	}
	c.state.Or(stateClosed)
	c.tell()
}

// tell calls the handler's Closed as soon as no other call is running.
func (c *Conn) tell() {
	for {
		s := c.state.Load()
		if s&stateTold != 0 || s >= stateCall {
			return
		}
		if c.state.CompareAndSwap(s, s|stateTold) {
			break
		}
	}
	c.handler.Closed(c.err)
	c.loop.forget(c)
}
