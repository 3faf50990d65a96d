package nio

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lesismal/nbio"
)

// Handler is told what happens to one connection. Its methods are called by the
// loop's own goroutines and must return soon; see the package's documentation for
// what may be called at the same time. After CloseAfterFlush or Close only Closed
// is called.
type Handler interface {
	// Readable: bytes, or the end, may be there. Read until ErrAgain.
	Readable()
	// Drained: everything that was queued has reached the kernel. It follows
	// each Write that left Unwritten above zero, once for all of them; a Write
	// since then may have queued more.
	Drained()
	// Expired: the time set by Conn.SetTimeout has passed. One that was on its
	// way while the time was changed still arrives.
	Expired()
	// Closed: the connection is gone. It is called exactly once, as the last
	// call. err is what was given to Conn.Close, nil when CloseAfterFlush
	// succeeded, and io.EOF when the peer reset or ended the connection.
	Closed(err error)
}

// The bits of Conn.state. Above them is the number of calls into the handler that
// are running.
const (
	stateClosed uint32 = 1 << iota // the socket is gone
	stateTold                      // the handler's Closed was called
	stateAdded                     // nbio will report the end
	stateReady                     // the socket may be shut down
	stateAbort                     // Close was called
	stateFlush                     // CloseAfterFlush was called
	stateShut                      // all was sent, and the peer told so
	stateOwed                      // Drained is owed to the handler
	stateListed                    // in the loop's list of drained connections

	stateCall uint32 = 1 << 16

	stateEnding = stateClosed | stateAbort | stateFlush
)

// Conn is one accepted connection. Read, Write, SetTimeout and CloseAfterFlush are
// for one goroutine at a time; the other methods may be called from any.
type Conn struct {
	nb      *nbio.Conn
	loop    *Loop
	handler Handler
	secure  *secure // nil without TLS
	err     error   // why it ended; guarded by nb's lock until stateAbort or stateClosed is set

	timer    timer
	queued   atomic.Int64 // bytes that nbio holds
	state    atomic.Uint32
	lingered int32 // bytes thrown away; the poller's
}

// Read reads what is there into p: plaintext when the connection uses TLS. It
// never blocks: with nothing to read it returns ErrAgain, and Readable will be
// called. It returns io.EOF when the peer will send no more; what is written
// still reaches a peer that only shut down its sending side. After any other error
// the connection is closed already or about to be.
func (c *Conn) Read(p []byte) (int, error) {
	if c.state.Load()&stateEnding != 0 {
		return 0, net.ErrClosed
	}
	if len(p) == 0 {
		return 0, nil
	}
	if c.secure == nil {
		return c.receive(p)
	}
	return c.secure.read(p)
}

// receive reads from the socket.
func (c *Conn) receive(p []byte) (int, error) {
	for {
		n, err := c.receiveNow(p)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			return 0, io.EOF
		case errors.Is(err, syscall.EAGAIN):
			return 0, ErrAgain
		case errors.Is(err, syscall.EINTR):
		default:
			c.Close(err)
			return 0, err
		}
	}
}

// receiveNow reads what the kernel has. The lock keeps the descriptor from becoming that
// of another connection.
func (c *Conn) receiveNow(p []byte) (int, error) {
	c.nb.Lock()
	defer c.nb.Unlock()
	if gone, _ := c.nb.IsClosed(); gone {
		return 0, net.ErrClosed
	}
	return read(c.nb.Hash(), p) // the hash is the descriptor
}

// Write sends p, and queues what the kernel does not take. It does not keep p. It
// returns ErrOverflow when more than Config.MaxUnwritten would be queued if the
// kernel took nothing, or more than the connection's share of
// Config.MaxUnwrittenTotal: either nothing of p is written then, or the kernel took
// a part and the connection is closed. Any other error means that the connection is
// closed or about to be.
func (c *Conn) Write(p []byte) error {
	if c.state.Load()&stateEnding != 0 {
		return net.ErrClosed
	}
	n := int64(len(p))
	if c.secure != nil {
		n += recordOverhead * (n/maxRecord + 1)
	}
	if q := c.queued.Load(); q+n > int64(c.loop.cfg.MaxUnwritten) || q > 0 && q+n > c.loop.share() {
		return ErrOverflow
	}
	if c.secure == nil {
		return c.send(p)
	}
	_, err := c.secure.tls.Write(p)
	return err
}

// send writes to the socket, or queues.
func (c *Conn) send(p []byte) error {
	if c.queued.Load() == 0 {
		n, err := c.sendNow(p)
		if err != nil {
			c.Close(err)
			return err
		}
		p = p[n:]
	}
	if len(p) == 0 {
		return nil
	}
	// Only crypto/tls's own records pass the first: see engineSlack. nbio has the
	// same limit, but closes the socket where it stands.
	if q := c.queued.Load() + int64(len(p)); q > int64(c.loop.cfg.MaxUnwritten+engineSlack) || q > c.loop.share() {
		c.Close(ErrOverflow)
		return ErrOverflow
	}
	c.queued.Add(int64(len(p)))
	c.loop.unwritten.Add(int64(len(p)))
	// nbio keeps a buffer until its last byte has left. In pieces, what is held is
	// what is counted, and not what it once was.
	for len(p) > 0 {
		piece := p[:min(len(p), largestBuffer)]
		if _, err := c.nb.Write(piece); err != nil {
			c.settle(len(p))
			return net.ErrClosed
		}
		p = p[len(piece):]
	}
	if c.queued.Load() > 0 {
		// The poller may have written everything by now, having found nothing
		// owed: whichever of both sees the other's change calls Drained.
		c.state.Or(stateOwed)
		if c.queued.Load() == 0 {
			c.drained()
		}
	}
	return nil
}

// sendNow writes what the kernel takes. nbio's own Write would close the socket
// on an error, here and now, where only its poller should.
func (c *Conn) sendNow(p []byte) (int, error) {
	c.nb.Lock()
	defer c.nb.Unlock()
	if gone, _ := c.nb.IsClosed(); gone {
		return 0, net.ErrClosed
	}
	for {
		n, err := write(c.nb.Hash(), p)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		case !errors.Is(err, syscall.EINTR):
			return 0, err
		}
	}
}

// written is called with nb's lock held, by the poller or from within send: it
// must call neither nbio nor the handler.
func (c *Conn) written(n int) {
	if c.settle(n) == 0 {
		c.drained()
	}
}

// settle takes up to n bytes off what is queued and returns what is left.
func (c *Conn) settle(n int) int64 {
	for {
		q := c.queued.Load()
		m := min(q, int64(n))
		if c.queued.CompareAndSwap(q, q-m) {
			c.loop.unwritten.Add(-m)
			return q - m
		}
	}
}

// drained has Drained called by the loop if it is owed.
func (c *Conn) drained() {
	if c.state.Load()&stateOwed != 0 && c.state.And(^stateOwed)&stateOwed != 0 {
		c.loop.drained.add(c)
	}
}

// Unwritten is the number of bytes that wait in this process for the peer to take
// them, TLS included.
func (c *Conn) Unwritten() int { return int(c.queued.Load()) }

// SetTimeout has Expired called once d has passed, in place of the time set
// before; with d <= 0 there is none. It comes up to 0.2 s late and never early.
// Setting a later time, the usual case, costs a clock reading and no lock.
func (c *Conn) SetTimeout(d time.Duration) {
	if c.state.Load()&stateEnding == 0 {
		c.loop.wheel.set(c, d)
	}
}

// Handler is what open returned for the connection.
func (c *Conn) Handler() Handler { return c.handler }

// TLS says whether the connection uses TLS.
func (c *Conn) TLS() bool { return c.secure != nil }

// RemoteAddr is the peer's address; IPv4 is never written as IPv6.
func (c *Conn) RemoteAddr() netip.AddrPort { return addrPort(c.nb.RemoteAddr()) }

// LocalAddr is the address that the peer connected to.
func (c *Conn) LocalAddr() netip.AddrPort { return addrPort(c.nb.LocalAddr()) }

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// readable is called by the poller.
func (c *Conn) readable() {
	switch s := c.state.Load(); {
	case s&stateAbort != 0:
		_ = c.nb.CloseWithError(c.err)
	case s&stateShut != 0:
		c.linger()
	case c.enter():
		c.handler.Readable()
		c.leave()
	}
}

// enter begins a call into the handler, unless it gets none yet or no more.
// Besides, it makes everything that was done before the connection was added
// visible to the calling goroutine, which nbio does not.
func (c *Conn) enter() bool {
	if c.state.Add(stateCall)&(stateEnding|stateAdded) == stateAdded {
		return true
	}
	c.leave()
	return false
}

// leave ends a call into the handler. Whoever leaves last after the end tells it.
func (c *Conn) leave() {
	if s := c.state.Add(^(stateCall - 1)); s&stateClosed != 0 {
		c.tell()
	}
}
