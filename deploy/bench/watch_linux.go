package main

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ommer/ommer/deploy/load"
)

// watch answers the pings of many WebSockets from one goroutine: a goroutine for
// each of them would take more memory than the connections themselves. While it is
// locked it reads nothing, so that others may.
type watch struct {
	sync.Mutex
	epoll int
	conns []*load.Conn // by the number that epoll has for them
	ended bool
	pongs int
	lost  error // the first connection that failed while nobody asked
	done  chan struct{}
}

// watchTurn is how long the watch waits for a ping before it looks whether it is to
// end, in milliseconds.
const watchTurn = 100

func newWatch() (*watch, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	w := &watch{epoll: epoll, done: make(chan struct{})}
	go w.run()
	return w, nil
}

// add has the watch answer the pings of a connection until that is closed.
func (w *watch) add(c *load.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	w.Lock()
	defer w.Unlock()
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(len(w.conns))}
	w.conns = append(w.conns, c)
	if cerr := raw.Control(func(fd uintptr) { err = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, int(fd), &event) }); cerr != nil {
		return cerr
	}
	return err
}

func (w *watch) run() {
	defer close(w.done)
	for w.turn() {
	}
}

// turn answers what is there. It waits without the lock, and asks again with it: an
// event is good only until somebody else reads.
func (w *watch) turn() bool {
	var events [128]unix.EpollEvent
	_, _ = unix.EpollWait(w.epoll, events[:1], watchTurn) // what fails here fails below
	w.Lock()
	defer w.Unlock()
	if w.ended {
		return false
	}
	n, err := unix.EpollWait(w.epoll, events[:], 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		w.lost = errors.Join(w.lost, fmt.Errorf("epoll_wait: %w", err))
		return false
	}
	for _, e := range events[:max(n, 0)] {
		if err := w.conns[e.Fd].Pong(); err == nil {
			w.pongs++
		} else if w.lost == nil { // and closed, which takes it out of the epoll
			w.lost = fmt.Errorf("while it was idle: %w", err)
		}
	}
	return true
}

// answered is how many pings were answered so far, and the first failure.
func (w *watch) answered() (int, error) {
	w.Lock()
	defer w.Unlock()
	return w.pongs, w.lost
}

func (w *watch) stop() error {
	w.Lock()
	w.ended = true
	w.Unlock()
	<-w.done
	return unix.Close(w.epoll)
}
