package nio

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/lesismal/nbio"
	"github.com/lesismal/nbio/logging"
)

// engine is nbio, and what must be known of its inside.
type engine struct {
	*nbio.Engine
	adopter
	pings *pings
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
	p := new(pings)
	err := p.open(e, l.cfg.Pollers)
	if err == nil {
		err = p.await()
	}
	if err != nil {
		// Stopping pollers that may not run would never end: see pings.await.
		p.close()
		return nil, fmt.Errorf("nio: starting the pollers: %w", err)
	}
	a, err := newAdopter(e, l.cfg.Pollers)
	if err != nil {
		l.log.Warn("half-closed connections will not be answered", "err", err)
	}
	return &engine{Engine: e, adopter: a, pings: p}, nil
}

// stop ends the pollers. No connection but the pings may be left, and none may be
// added.
func (e *engine) stop() {
	e.pings.close()
	e.Stop()
	e.adopter.close()
}

// The callbacks of nbio. What nbio calls a session is a *Conn or a *ping.

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
	case *ping:
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
