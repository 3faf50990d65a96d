package nio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestLeaveTakesTheQueue has connections wait in the accept queue, beyond the time
// to leave, when the loop is told to accept no more.
func TestLeaveTakesTheQueue(t *testing.T) {
	l := start(t, Config{ReusePort: true})
	hold, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	addr := listen(t, l, nil, func(c *Conn) Handler {
		once.Do(func() {
			close(held)
			<-hold
		})
		return echoing(nil)(c)
	})
	conns := []net.Conn{dial(t, addr, 0)}
	wait(t, "the accepting goroutine to be held", held)
	for range 20 {
		conns = append(conns, dial(t, addr, 0))
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		l.StopAccepting()
	}()
	time.AfterFunc(leaveTime+leaveMore, func() { close(hold) })
	wait(t, "StopAccepting", stopped)
	for _, c := range conns {
		exchange(t, c, []byte("hello"))
	}
	if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the only listener has left: %v, want a refused connection", err)
	}
}

// TestTakeovers passes an address from loop to loop while clients open one
// connection after the other.
func TestTakeovers(t *testing.T) {
	const times, clients = 3, 8
	l := start(t, Config{ReusePort: true, MaxConnsPerAddr: -1})
	addr := listen(t, l, nil, echoing(nil))

	var served atomic.Int64
	failed := make(chan error, clients)
	ctx, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := visit(addr); err != nil {
					failed <- err
					return
				}
				served.Add(1)
			}
		})
	}
	more := func() {
		goal := served.Load() + 100
		eventually(t, "more visits", func() bool { return served.Load() >= goal || len(failed) > 0 })
	}
	more()
	for range times {
		next := start(t, Config{ReusePort: true, MaxConnsPerAddr: -1})
		if _, err := next.Listen(addr, nil, echoing(nil)); err != nil {
			t.Fatal(err)
		}
		more()
		l.StopAccepting()
		l = next
		more()
	}
	end()
	wg.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	t.Logf("%d visits, %d takeovers", served.Load(), times)
}

// visit opens a connection and has a few bytes sent back.
func visit(addr string) error {
	c, err := net.DialTimeout("tcp", addr, 20*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write([]byte("hello")); err != nil {
		return fmt.Errorf("%v: %w", c.LocalAddr(), err)
	}
	if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
		return fmt.Errorf("%v: %w", c.LocalAddr(), err)
	}
	return nil
}
