package nio

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lesismal/nbio"
	"golang.org/x/sys/unix"
)

// pings find out whether the pollers run, and how long each takes to come to what
// is ready: a byte to each is an event behind those of the connections.
type pings struct {
	all []*ping // by poller

	mu     sync.Mutex // held while bytes are sent
	closed bool
	pong   func()
	left   atomic.Int32 // pollers that have not come to it
}

// ping is a connection that belongs to one poller.
type ping struct {
	of  *pings
	end *os.File    // what bytes are sent by
	out atomic.Bool // it was sent one
}

// Ping has pong called once each poller has come to what is ready now, by the last
// of them, so it must return soon. Ping must not be called again before. Nothing is
// called before Run, and after Close has begun there may be no answer.
func (l *Loop) Ping(pong func()) {
	select {
	case <-l.started:
		l.engine.pings.send(pong)
	default:
	}
}

func (p *pings) send(pong func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.pong = pong
	p.left.Store(int32(len(p.all)))
	for _, c := range p.all {
		c.out.Store(true)
		_, _ = c.end.Write([]byte{0}) // it has room: the last byte was read
	}
}

// seen is called by the poller. The flag, not the event, says that a byte was sent:
// nbio orders nothing by itself, and tells of other events too.
func (c *ping) seen(nb *nbio.Conn) {
	var b [8]byte
	_, _ = nb.Read(b[:])
	if c.out.CompareAndSwap(true, false) && c.of.left.Add(-1) == 0 {
		c.of.pong()
	}
}

// open makes the connections. nbio spreads connections over its pollers by their
// descriptors, so enough of them reach all.
func (p *pings) open(e *nbio.Engine, pollers int) error {
	p.all = make([]*ping, pollers)
	var spare []net.Conn // open, so that descriptors are not the same ones again
	defer func() {
		for _, c := range spare {
			_ = c.Close()
		}
	}()
	for covered := 0; covered < pollers; {
		near, far, err := pair()
		if err != nil {
			return err
		}
		nb, err := nbio.NBConn(near) // has a descriptor of its own, near is closed
		if err != nil {
			_, _ = near.Close(), far.Close()
			return err
		}
		i := nb.Hash() % pollers
		if p.all[i] != nil {
			_ = far.Close()
			if spare = append(spare, nb); len(spare) > 64*pollers {
				return errors.New("their descriptors do not reach all")
			}
			continue
		}
		p.all[i] = &ping{of: p, end: far}
		covered++
		nb.Lock()
		nb.SetSession(p.all[i])
		nb.Unlock()
		if _, err := e.AddConn(nb); err != nil {
			return err
		}
	}
	return nil
}

// await returns when every poller has handled an event. A poller that is stopped
// before it began never ends: it resets the flag that told it to stop.
func (p *pings) await() error {
	running := make(chan struct{})
	p.send(func() { close(running) })
	select {
	case <-running:
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("they do not run")
	}
}

// close gives up the ends that bytes are sent by. The others are nbio's.
func (p *pings) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.all {
		if c != nil {
			_ = c.end.Close()
		}
	}
}

// pair returns two ends of a connection.
func pair() (near net.Conn, far *os.File, err error) {
	syscall.ForkLock.RLock() // as not every Unix can set close-on-exec at once
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "ping")
	defer func() { _ = f.Close() }() // near is a duplicate
	far = os.NewFile(uintptr(fds[1]), "ping")
	if near, err = net.FileConn(f); err != nil {
		_ = far.Close()
		return nil, nil, err
	}
	return near, far, nil
}
