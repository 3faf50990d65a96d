package nio

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lesismal/nbio"
	"github.com/lesismal/nbio/logging"
	"golang.org/x/sys/unix"
)

// engine is nbio, and what must be known of its inside.
type engine struct {
	*nbio.Engine
	adopter
}

// startEngine returns an engine whose pollers run.
func startEngine(l *Loop) (*engine, error) {
	e := nbio.NewEngine(nbio.Config{
		Name:    "nio",
		NPoller: l.cfg.Pollers, // nbio's default is a quarter of the cores
		// Edge-triggered and with OnRead set below, nbio never reads by itself.
		EpollMod:           nbio.EPOLLET,
		MaxWriteBufferSize: l.cfg.MaxUnwritten + engineSlack,
		ReadBufferSize:     lingerBuffer,
		BodyAllocator:      &l.buffers,
	})
	e.OnOpen(opened)
	e.OnRead(readable)
	e.OnWrittenSize(written)
	e.OnClose(closed)
	if err := e.Start(); err != nil {
		return nil, fmt.Errorf("nio: starting the pollers: %w", err)
	}
	if err := awaitPollers(e, l.cfg.Pollers); err != nil {
		// Stopping pollers that may not run would never end: see probe.
		return nil, fmt.Errorf("nio: starting the pollers: %w", err)
	}
	a, err := newAdopter(e, l.cfg.Pollers)
	if err != nil {
		l.log.Warn("half-closed connections will not be answered", "err", err)
	}
	return &engine{Engine: e, adopter: a}, nil
}

// stop ends the pollers. No connection may be left, and none may be added.
func (e *engine) stop() {
	e.Stop()
	e.adopter.close()
}

// The callbacks of nbio. What nbio calls a session is a *Conn or a *probe.

// opened is called once an nbio connection belongs to its poller: from here on
// nbio reports its end.
func opened(nb *nbio.Conn) {
	if c, ok := nb.Session().(*Conn); ok {
		c.state.Or(stateAdded)
	}
}

func readable(nb *nbio.Conn) {
	switch s := nb.Session().(type) {
	case *Conn:
		s.readable()
	case *probe:
		s.seen(nb)
	}
}

// written is called with nbio's lock on the connection held.
func written(nb *nbio.Conn, _ []byte, n int) {
	if c, ok := nb.Session().(*Conn); ok {
		c.written(n)
	}
}

// closed is called on a goroutine that all connections of the engine share.
func closed(nb *nbio.Conn, err error) {
	if c, ok := nb.Session().(*Conn); ok {
		c.finish(err)
	}
}

// probe finds out whether the pollers run. A poller that is stopped before it
// began never ends: it resets the flag that told it to stop.
type probe struct {
	pollers int
	running []atomic.Bool
	left    atomic.Int32
	all     chan struct{}
}

// seen is called by the poller that the probe's connection belongs to.
func (p *probe) seen(nb *nbio.Conn) {
	nb.Lock() // pairs with awaitPollers: nbio orders nothing by itself
	if p.running[nb.Hash()%p.pollers].CompareAndSwap(false, true) && p.left.Add(-1) == 0 {
		close(p.all)
	}
	nb.Unlock()
	_ = nb.Close()
}

// awaitPollers returns when every poller has handled an event. nbio spreads
// connections over its pollers by their descriptors, so enough of them reach all.
func awaitPollers(e *nbio.Engine, pollers int) error {
	p := &probe{pollers: pollers, running: make([]atomic.Bool, pollers), all: make(chan struct{})}
	p.left.Store(int32(pollers))
	syscall.ForkLock.RLock() // as not every Unix can set close-on-exec at once
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	// The other end is shut down, so each probe sees its end at once. Closing it
	// would not do while a process that was just forked has it too.
	err = unix.Shutdown(fds[1], unix.SHUT_RDWR)
	_ = unix.Close(fds[1])
	if err != nil {
		_ = unix.Close(fds[0])
		return err
	}
	f := os.NewFile(uintptr(fds[0]), "probe")
	defer func() { _ = f.Close() }() // it was only read from
	var held []net.Conn              // keep descriptors from being the same ones again
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	covered := map[int]bool{}
	for len(covered) < pollers && len(held) < 64*pollers {
		c, err := net.FileConn(f)
		if err != nil {
			return err
		}
		nb, err := nbio.NBConn(c)
		if err != nil {
			_ = c.Close()
			return err
		}
		if r := nb.Hash() % pollers; covered[r] {
			held = append(held, nb)
			continue
		}
		covered[nb.Hash()%pollers] = true
		nb.Lock()
		nb.SetSession(p)
		nb.Unlock()
		if _, err := e.AddConn(nb); err != nil {
			return err
		}
	}
	select {
	case <-p.all:
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("they do not run")
	}
}

// nbioLog is the one thing of nbio that is global: its logger, which prints to
// standard output unless it is replaced. The first Loop of the process does so.
var nbioLog sync.Once

func routeLog(log *slog.Logger) {
	nbioLog.Do(func() { logging.SetLogger(engineLog{log}) })
}

// engineLog passes nbio's messages on. Those of levels below warning tell of
// starting and stopping only.
type engineLog struct{ log *slog.Logger }

func (l engineLog) Debug(format string, v ...any) {
	l.log.Debug("nbio", "msg", fmt.Sprintf(format, v...))
}
func (l engineLog) Info(format string, v ...any) {
	l.log.Debug("nbio", "msg", fmt.Sprintf(format, v...))
}
func (l engineLog) Warn(format string, v ...any) {
	l.log.Warn("nbio", "msg", fmt.Sprintf(format, v...))
}
func (l engineLog) Error(format string, v ...any) {
	l.log.Error("nbio", "msg", fmt.Sprintf(format, v...))
}
