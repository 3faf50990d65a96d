package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// enemy is a hostile client with one connection. Its attack's conduct runs in one
// goroutine; another one reads what the edge says.
type enemy struct {
	army *army
	ctx  context.Context // ends with the time to act
	over context.Context // ends with the attack
	tcp  *net.TCPConn
	conn net.Conn // tcp, or TLS over it
	keys *sending // where the attack needs them
	due  time.Time
	acts int

	release func() bool // when the connection has ended

	upgraded chan struct{} // closed when the edge has agreed to a WebSocket
	ended    chan struct{} // closed when the edge has ended the connection
	left     chan struct{} // closed when the enemy has ended it
}

// meet opens a connection and starts reading. It is nil where there was none to open,
// and that is counted.
func (a *army) meet(ctx, over context.Context, n int, due time.Time) (e *enemy, reading *sync.WaitGroup) {
	source := a.Sources[n%len(a.Sources)]
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	if a.attack.window > 0 {
		d.Control = func(_, _ string, c syscall.RawConn) (err error) {
			// Before the connection is made, since the size of the window is agreed on then.
			if failed := c.Control(func(fd uintptr) {
				err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, a.attack.window)
			}); failed != nil {
				return failed
			}
			return err
		}
	}
	conn, err := d.DialContext(over, "tcp", a.Site.addr(a.Secure))
	if err != nil {
		a.report.end("no connection, " + endOf(err))
		return nil, nil
	}
	e = &enemy{army: a, ctx: ctx, over: over, tcp: conn.(*net.TCPConn), conn: conn, due: due, upgraded: make(chan struct{}), ended: make(chan struct{}), left: make(chan struct{})}
	// A connection that takes no deadline has ended.
	e.release = context.AfterFunc(over, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	switch {
	case a.attack.keyed:
		e.keys, err = takeOver(over, conn, a.tls)
	case a.Secure && !a.attack.rawTLS:
		secure := tls.Client(conn, a.tls)
		err = secure.HandshakeContext(over)
		e.conn = secure
	}
	if err != nil {
		a.report.end(endOf(err))
		e.release()
		_ = conn.Close()
		return nil, nil
	}
	reading = new(sync.WaitGroup)
	reading.Go(e.listen)
	return e, reading
}

// listen reads until the connection has ended, and counts what it reads.
func (e *enemy) listen() {
	defer close(e.ended)
	end := ""
	switch {
	case e.army.attack.deaf:
		select {
		case <-e.over.Done(): // the parent knows
			end = endOpen
		case <-e.left:
		}
	case e.army.attack.rawTLS:
		end = e.skip()
	default:
		end = e.converse(bufio.NewReaderSize(e.conn, 1<<10))
	}
	select {
	case <-e.left:
		end = endLeft
	default:
	}
	e.army.report.end(end)
}

// send writes, and says whether that went well.
func (e *enemy) send(p []byte) bool {
	n, err := e.conn.Write(p)
	e.army.report.sent.Add(int64(n))
	return err == nil
}

// pause waits, and says whether there is still somebody to attack.
func (e *enemy) pause(d time.Duration) bool { return e.wait(e.over, d) }

func (e *enemy) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil // both may have been so
	case <-ctx.Done():
	case <-e.ended:
	}
	return false
}

// turn waits until the attack's rate allows for the next act of this enemy. The first
// one is made even if the time to act is over by then.
func (e *enemy) turn() bool {
	e.due = e.due.Add(e.army.interval())
	// A turn that was missed is not made up for: the rate is a cap.
	if late := time.Since(e.due); late > 0 {
		e.due = e.due.Add(late)
	}
	if e.acts++; e.acts == 1 {
		return e.wait(e.over, time.Until(e.due))
	}
	return e.wait(e.ctx, time.Until(e.due))
}

// drip sends byte by byte with a pause after each.
func (e *enemy) drip(p []byte, every time.Duration) bool {
	for i := range p {
		if !e.send(p[i:i+1]) || !e.pause(every) {
			return false
		}
	}
	return true
}

// flood sends the same again and again, as often as the attack's rate allows.
func (e *enemy) flood(p []byte) {
	for e.turn() && e.send(p) {
	}
}

// upgrade opens the WebSocket, and says whether it is open.
func (e *enemy) upgrade() bool {
	if !e.send(e.army.handshake()) {
		return false
	}
	select {
	case <-e.upgraded:
		return true
	case <-e.over.Done():
	case <-e.ended:
	}
	return false
}

// reset breaks the connection off.
func (e *enemy) reset() {
	close(e.left)
	_ = e.tcp.SetLinger(0) // the edge may have been first
	_ = e.tcp.Close()
}

// leave closes the connection.
func (e *enemy) leave() {
	close(e.left)
	_ = e.tcp.Close() // see above
}

// stay waits for the end of the connection, or of the attack.
func (e *enemy) stay() {
	select {
	case <-e.left:
	case <-e.ended:
	case <-e.over.Done():
	}
}

// army is the enemies of one process. They share the attack's rate.
type army struct {
	job
	attack *attack
	tls    *tls.Config
	hello  []byte // a ClientHello
	report report
}

// interval is the pause between two acts of one enemy.
func (a *army) interval() time.Duration {
	if a.attack.rate == 0 {
		return 0
	}
	return time.Duration(float64(a.Enemies) / a.rate() * float64(time.Second))
}

// rate is the acts per second of this process.
func (a *army) rate() float64 { return a.attack.rate / float64(max(a.attack.processes, 1)) }

// patience is how long enemies wait for their end when they have stopped acting. It is
// longer than every time-out of the edge, for machines that are busy.
const patience = 20 * time.Second

// march runs the attack to its end: until all have met theirs, or, where connections
// are to stay open, until the time to act is over and somebody was answered. That time
// begins when everybody has come.
func (a *army) march(ctx context.Context) {
	over, finish := context.WithTimeout(ctx, a.Lasts+2*patience)
	defer finish()
	acting, stop := context.WithCancel(over)
	defer stop()
	var enemies, coming sync.WaitGroup
	coming.Add(a.Enemies)
	for n := range a.Enemies {
		enemies.Go(func() { a.live(acting, over, n, coming.Done) })
	}
	coming.Wait()
	pause(over, a.Lasts)
	stop()
	if slices.Contains(a.attack.ends, endOpen) {
		for len(a.attack.answers) > 0 && !a.report.answered() && pause(over, 10*time.Millisecond) {
		}
		finish()
	}
	enemies.Wait()
}

// live is the life of one enemy: one connection, or one after the other. It calls come
// once, when it has opened the first one, or could not.
func (a *army) live(ctx, over context.Context, n int, come func()) {
	due := time.Now()
	if a.attack.rate > 0 { // they do not act all at the same moment
		due = due.Add(time.Duration(rand.Float64() * float64(a.interval())))
	}
	pause(over, time.Until(due))
	for first := true; first || a.attack.again && pause(ctx, time.Until(due)); first = false {
		e, reading := a.meet(ctx, over, n, due)
		if first {
			come()
		}
		if e != nil {
			a.report.lives.Add(1)
			a.attack.conduct(e)
			e.stay()
			reading.Wait()
			e.release()
			_ = e.tcp.Close() // it may have ended
		}
		due = due.Add(a.interval())
		if late := time.Since(due); late > 0 {
			due = due.Add(late)
		}
	}
}

// handshake is the request for a WebSocket.
func (a *army) handshake() []byte {
	return fmt.Appendf(nil, "GET /ws/v3/%s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", a.Site.Key)
}
