package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// DialerConfig is what a Dialer is made from.
type DialerConfig struct {
	Endpoints []Endpoint // connections go to them in turn
	Questions []Question
	Batch     int           // calls per request in an array; 0 for single calls
	Verify    bool          // recompute the hashes of uncles
	Sources   []net.IP      // local addresses, in turn; none: the system's choice
	Timeout   time.Duration // for opening a connection, and for each request
}

// Dialer opens connections that ask its questions. It may be used by any number of
// goroutines.
type Dialer struct {
	masker
	config  DialerConfig
	qs      *questions
	targets []target
	sources []net.Dialer
	dialing chan struct{} // holds a token for each connection being opened
	dial    func(ctx context.Context, from *net.Dialer, addr string) (net.Conn, error)
}

// target is an endpoint, ready to be dialed.
type target struct {
	Endpoint
	head     []byte      // of HTTP requests
	tls      *tls.Config // nil for none
	unzipper *unzipper   // nil if answers are not compressed
}

// dialingAtOnce is how many connections are opened at a time. It stays below the
// edge's limit of TLS handshakes of one address.
const dialingAtOnce = 32

// maxStaleness is by how much a request may time out early.
const maxStaleness = 50 * time.Millisecond

// readBuffer is what a connection first has for an answer; it grows if it must.
const readBuffer = 4 << 10

// NewDialer makes a Dialer. Nothing is opened yet.
func NewDialer(c DialerConfig) (*Dialer, error) {
	if len(c.Endpoints) == 0 || c.Timeout <= 0 {
		return nil, errors.New("load: no endpoint, or no time-out")
	}
	qs, err := newQuestions(c.Questions, c.Batch, c.Verify)
	if err != nil {
		return nil, err
	}
	d := &Dialer{masker: newMasker(c.Endpoints), config: c, qs: qs, dialing: make(chan struct{}, dialingAtOnce)}
	d.dial = func(ctx context.Context, from *net.Dialer, addr string) (net.Conn, error) {
		return from.DialContext(ctx, "tcp", addr)
	}
	for _, e := range c.Endpoints {
		t := target{Endpoint: e, head: httpHead(e)}
		if e.Gzip && !e.WS {
			t.unzipper = newUnzipper(len(qs.requests))
		}
		if e.TLS || len(e.CA) > 0 {
			t.tls = &tls.Config{ServerName: e.host(), NextProtos: []string{"http/1.1"}, InsecureSkipVerify: e.Insecure}
			if len(e.CA) > 0 {
				t.tls.RootCAs = x509.NewCertPool()
				if !t.tls.RootCAs.AppendCertsFromPEM(e.CA) {
					return nil, errors.New("the certificate cannot be read")
				}
			}
		}
		d.targets = append(d.targets, t)
	}
	for _, ip := range c.Sources {
		d.sources = append(d.sources, net.Dialer{LocalAddr: &net.TCPAddr{IP: ip}})
	}
	if len(d.sources) == 0 {
		d.sources = make([]net.Dialer, 1)
	}
	return d, nil
}

// Requests is how many different requests there are.
func (d *Dialer) Requests() int { return len(d.qs.requests) }

// Conn is a connection. It is used by one goroutine at a time.
type Conn struct {
	d      *Dialer
	t      *target
	http   *httpConn // or
	ws     *wsConn
	id     uint64
	out    []byte
	number int
	next   int       // the request to be sent
	used   time.Time // when it was answered last, or opened
	armed  time.Time // when its deadline was set
	last   bool      // it is closed
	stale  bool      // because the server had closed it before it answered
}

// Dial opens the connection of that number: it says which endpoint, which source
// address and which question come first. Its errors are Failures.
func (d *Dialer) Dial(ctx context.Context, number int) (*Conn, error) {
	select {
	case d.dialing <- struct{}{}:
		defer func() { <-d.dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, d.config.Timeout)
	defer cancel()
	c := &Conn{d: d, t: &d.targets[number%len(d.targets)], id: firstID, number: number, next: number % len(d.qs.requests)}
	conn, err := d.dial(ctx, &d.sources[number%len(d.sources)], c.t.Addr)
	if err != nil {
		return nil, d.clean(notConnected(err))
	}
	if c.t.tls != nil {
		secure := tls.Client(conn, c.t.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, d.clean(notSecured(err))
		}
		conn = secure
	}
	// Whoever no longer wants the connection does not wait for a greeting.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if !c.t.WS {
		c.http, c.used = &httpConn{Conn: conn, buf: make([]byte, readBuffer)}, time.Now()
		return c, c.greet()
	}
	c.ws, err = openWS(conn, c.t.Endpoint, d.config.Timeout)
	if err != nil {
		_ = conn.Close()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = &Failure{KindTimeout, "in the WebSocket handshake"}
		}
		return nil, d.clean(broken(err))
	}
	return c, nil
}

// greet has a connection over TLS make an exchange: a client holds a TLS 1.3 handshake
// for complete before the server does, and so would run ahead of it. What comes of the
// calls does not matter here.
func (c *Conn) greet() error {
	if c.t.tls == nil {
		return nil
	}
	_, o := c.ask(c.next)
	switch {
	case !c.last:
		return nil
	case len(o.failed) > 0:
		return c.d.clean(o.failed[0].why)
	default:
		return &Failure{KindClosed, "after one request: the load needs keep-alive"}
	}
}

// Ask sends request i, waits for its answer and checks it. The answer is good until
// the next call. The error is the first failure.
func (c *Conn) Ask(i int) (answer []byte, err error) {
	answer, o := c.ask(i)
	if len(o.failed) > 0 {
		return answer, c.d.clean(o.failed[0].why)
	}
	return answer, nil
}

// ask sends request i. After a failure that is not the answer's the connection is
// closed.
func (c *Conn) ask(i int) ([]byte, outcome) {
	r := c.d.qs.requests[i]
	id := c.id
	m, err := c.exchange(i, id)
	if f, ok := errors.AsType[*Failure](err); ok && c.http != nil && f.Kind != KindProtocol {
		if c.last = m.last; c.last {
			_ = c.Close()
		}
		return m.body, all(r.calls, f) // an HTTP status: the connection may go on
	}
	if err != nil {
		c.last, c.stale = true, errors.Is(err, errStale) && !errors.Is(err, os.ErrDeadlineExceeded)
		_ = c.Close()
		return nil, all(r.calls, broken(err))
	}
	if c.t.unzipper == nil {
		c.id += uint64(r.calls)
	}
	if m.zipped {
		if c.t.unzipper == nil {
			return nil, all(r.calls, malformed("a compressed answer that nobody asked for"))
		}
		if m.body, err = c.t.unzipper.unzip(i, m.body); err != nil {
			return nil, all(r.calls, broken(err))
		}
	}
	if c.last = m.last; c.last {
		_ = c.Close()
	}
	c.used = time.Now()
	o := c.d.qs.check(r, m.body, id)
	if len(o.failed) > 0 && o.failed[0].why.Kind == KindID && c.t.unzipper == nil && answeredBefore(m.body, id) {
		// From here on each answer would be taken for the next request's.
		c.last = true
		_ = c.Close()
		return m.body, all(r.calls, &Failure{KindTwice, o.failed[0].why.Detail})
	}
	return m.body, o
}

// answeredBefore says whether an answer is one to a request from before that with this
// id: all of them have their answers.
func answeredBefore(answer []byte, id uint64) bool {
	n, err := strconv.ParseUint(idOf(answer), 10, 64)
	return err == nil && n >= firstID && n < id
}

// exchange sends request i and returns the response.
func (c *Conn) exchange(i int, id uint64) (message, error) {
	if err := c.arm(); err != nil {
		return message{}, err
	}
	c.out = c.appendRequest(c.out[:0], i, id)
	if c.ws != nil {
		return c.ws.exchange(c.out)
	}
	return c.http.exchange(c.out)
}

// arm sets the deadline of an exchange. It is set again when the last one has grown old,
// not each time: the load must be cheap.
func (c *Conn) arm() error {
	now := time.Now()
	if now.Sub(c.armed) <= min(c.d.config.Timeout/50, maxStaleness) {
		return nil
	}
	c.armed = now
	return c.net().SetDeadline(now.Add(c.d.config.Timeout))
}

// Pong waits for a ping on a WebSocket that asks nothing, and answers it. After a
// failure the connection is closed.
func (c *Conn) Pong() error {
	err := c.arm()
	if err == nil {
		err = c.ws.pong()
	}
	if err == nil {
		return nil
	}
	c.last = true
	_ = c.Close() // it may be closed
	return c.d.clean(broken(err))
}

// appendRequest appends request i as it is sent.
func (c *Conn) appendRequest(dst []byte, i int, id uint64) []byte {
	r := &c.d.qs.requests[i]
	if c.ws != nil {
		return r.ws.appendTo(dst, id, true)
	}
	return r.http.appendTo(append(dst, c.t.head...), id, false)
}

// turn returns the request that comes next.
func (c *Conn) turn() int {
	i := c.next
	if c.next++; c.next == len(c.d.qs.requests) {
		c.next = 0
	}
	return i
}

func (c *Conn) net() net.Conn {
	if c.ws != nil {
		return c.ws.Conn
	}
	return c.http.Conn
}

// SyscallConn is the socket, below TLS if there is any, to be watched for what comes
// while nothing is asked. Nobody but the Conn may read from it.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	conn := c.net()
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("load: %T has no socket", conn)
	}
	return socket.SyscallConn()
}

// Closed says whether the connection was closed: by an answer after which its server
// keeps it no longer, or by a failure.
func (c *Conn) Closed() bool { return c.last }

// Close closes the connection.
func (c *Conn) Close() error { return c.net().Close() }

// DialAll opens n connections, has each ask a question, rightly answered, and calls
// opened with it, from several goroutines. If one fails none stays open.
func (d *Dialer) DialAll(ctx context.Context, n int, opened func(*Conn) error) ([]*Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conns := make([]*Conn, n)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, dialingAtOnce) {
		workers.Go(func() {
			for i := int(next.Add(1) - 1); i < n && ctx.Err() == nil; i = int(next.Add(1) - 1) {
				c, err := d.Dial(ctx, i)
				if err == nil {
					conns[i] = c
					_, err = c.Ask(c.turn())
				}
				if err == nil {
					err = opened(c)
				}
				if err != nil {
					cancel(fmt.Errorf("connection %d of %d: %w", i+1, n, err))
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, errors.Join(err, CloseAll(conns))
	}
	return conns, nil
}

// CloseAll closes the connections that were opened.
func CloseAll(conns []*Conn) error {
	var errs []error
	for _, c := range conns {
		if c != nil && !c.last {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
