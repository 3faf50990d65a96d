package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ommer/ommer/deploy/load"
)

// The load: clients that ask at fixed times whatever becomes of their questions (an open
// loop), half of them over HTTP with keep-alive, half over WebSockets, and half of each at
// either edge. One that could not ask in time asks at once, and latency counts from
// when the question was due.
const (
	clients  = 48
	interval = 200 * time.Millisecond // between the questions of one of them
	// answerTime is longer than an edge takes to give a call up.
	answerTime = lookupTime + 3*time.Second
	// dialTime is how long a client waits for an edge that may be dead.
	dialTime = time.Second
	// balanceEvery is how often a balancer would look which edges are well.
	balanceEvery = 250 * time.Millisecond
)

// crowd is the load.
type crowd struct {
	truth  *truth
	book   *ledger
	dialer *load.Dialer // of endpoints edge 1 HTTP, edge 1 WebSocket, edge 2 ...
	ready  [edges]atomic.Bool
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

// startLoad begins to ask.
func startLoad(ctx context.Context, s *site, t *truth, book *ledger) (*crowd, error) {
	var endpoints []load.Endpoint
	for _, m := range s.of(edge) {
		endpoints = append(endpoints,
			load.Endpoint{Addr: m.at(httpPort), Path: "/v3/" + s.key},
			load.Endpoint{Addr: m.at(httpPort), Path: "/ws/v3/" + s.key, WS: true})
	}
	dialer, err := load.NewDialer(load.DialerConfig{Endpoints: endpoints, Questions: t.asked(), Verify: true, Timeout: answerTime})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	c := &crowd{truth: t, book: book, dialer: dialer, stop: stop}
	for i, m := range s.of(edge) {
		c.ready[i].Store(true)
		c.wg.Go(func() {
			for pause(ctx, balanceEvery) {
				c.ready[i].Store(m.well(ctx) == nil)
			}
		})
	}
	start := time.Now()
	for n := range clients {
		// Who asks what is drawn, but the same in each run.
		one := &client{crowd: c, number: n, home: n % edges, ws: n / edges % 2, rng: rand.New(rand.NewPCG(uint64(n), 0))}
		c.wg.Go(func() { one.run(ctx, start.Add(interval*time.Duration(n)/clients)) })
	}
	return c, nil
}

// end lets everybody leave.
func (c *crowd) end() {
	c.stop()
	c.wg.Wait()
}

// client asks at one edge, its home, and at another one while that is not well.
type client struct {
	*crowd
	number, home, ws int
	rng              *rand.Rand

	conn *load.Conn
	at   int // the edge of conn
	lost int // the edge that failed last, -1 for none
}

// run asks until ctx ends. What is cut off by that does not count.
func (c *client) run(ctx context.Context, due time.Time) {
	c.lost = -1
	for pause(ctx, time.Until(due)) {
		c.book.begin(c.number, due)
		failure := c.ask(ctx, c.rng.IntN(len(c.truth.questions)))
		if ctx.Err() != nil {
			break
		}
		c.book.end(c.number, sample{due: due, done: time.Now(), edge: c.at, failure: failure})
		due = due.Add(interval)
	}
	c.close()
}

// ask asks one question and returns why it was not answered rightly.
func (c *client) ask(ctx context.Context, i int) *load.Failure {
	if err := c.connect(ctx); err != nil {
		c.lost = c.at
		return failureOf(err)
	}
	conn := c.conn
	cut := context.AfterFunc(ctx, func() { _ = conn.Close() }) // then it need not be waited for
	answer, err := c.conn.Ask(i)
	cut()
	if err == nil {
		c.lost = -1
		if err = c.truth.questions[i].check(answer); err != nil {
			return &load.Failure{Kind: load.KindWrong, Detail: err.Error()}
		}
		return nil
	}
	if c.conn.Closed() {
		c.lost = c.at
		c.close()
	}
	return failureOf(err)
}

// connect sees to it that there is a connection: to the edge that a balancer would
// choose for who has none, and to the other one if that cannot be reached.
func (c *client) connect(ctx context.Context) error {
	if c.conn != nil && (c.conn.Closed() || ended(c.conn) || c.at != c.home && c.ready[c.home].Load()) {
		c.close()
	}
	if c.conn != nil {
		return nil
	}
	first, second := c.home, (c.home+1)%edges
	if (!c.ready[first].Load() || c.lost == first) && c.ready[second].Load() {
		first, second = second, first
	}
	err := c.dial(ctx, first)
	if err != nil {
		if again := c.dial(ctx, second); again == nil {
			return nil
		}
	}
	return err
}

func (c *client) dial(ctx context.Context, to int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	c.at = to
	if c.conn, err = c.dialer.Dial(ctx, 2*to+c.ws); err != nil {
		c.conn = nil
	}
	return err
}

// close ends the connection. Its errors are of no interest: what was asked has been
// answered, or the failure has been counted.
func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// ended says whether a server has something to say on a connection on which nothing
// was asked: that it is closed, since who pings waits for silence first. A client that
// reads all the time knows, and asks on another connection.
func ended(conn *load.Conn) (yes bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		yes = !errors.Is(err, syscall.EAGAIN)
	})
	return yes || err != nil
}

// failureOf is why a question was not answered, or why no connection was opened.
func failureOf(err error) *load.Failure {
	if f, ok := errors.AsType[*load.Failure](err); ok {
		return f
	}
	return &load.Failure{Kind: load.KindTimeout, Detail: fmt.Sprintf("connecting: %v", err)}
}
