package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// endpoint is where and how questions are asked. It travels to the process that
// holds idle connections.
type endpoint struct {
	Addr string
	Path string // with the API key: never to be printed
	WS   bool   // WebSocket, else HTTP with keep-alive
	Gzip bool   // ask for compressed answers, over HTTP
	CA   []byte // PEM that verifies the server; empty for no TLS

	Source net.IP // to connect from; nil leaves it to the system
}

// client asks on one connection. It is used by one goroutine at a time.
type client interface {
	// ask sends question i and returns the answer, which is good until the next
	// call.
	ask(i int) (answer []byte, err error)
	close() error
}

// dialer opens connections to an endpoint.
type dialer struct {
	endpoint  endpoint
	tls       *tls.Config // nil for none
	questions []question
	requests  [][]byte // by question, as they are sent
	unzipper  *unzipper
}

// readBuffer is what a connection first has for an answer; it grows if it must.
const readBuffer = 4 << 10

func newDialer(e endpoint, qs []question) (*dialer, error) {
	d := &dialer{endpoint: e, questions: qs}
	for _, q := range qs {
		if e.WS {
			d.requests = append(d.requests, appendFrame(nil, opText, []byte(q.Body)))
		} else {
			d.requests = append(d.requests, httpRequest(e, q.Body))
		}
	}
	if e.Gzip {
		d.unzipper = newUnzipper(len(qs))
	}
	if len(e.CA) == 0 {
		return d, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(e.CA) {
		return nil, errors.New("the certificate cannot be read")
	}
	d.tls = &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"http/1.1"}}
	return d, nil
}

// dial opens one connection. Everything on it must be over by the deadline.
func (d *dialer) dial(ctx context.Context, deadline time.Time) (client, error) {
	var nd net.Dialer
	if d.endpoint.Source != nil {
		nd.LocalAddr = &net.TCPAddr{IP: d.endpoint.Source}
	}
	conn, err := nd.DialContext(ctx, "tcp", d.endpoint.Addr)
	if err != nil {
		return nil, err
	}
	if err = conn.SetDeadline(deadline); err == nil && d.tls != nil {
		secure := tls.Client(conn, d.tls)
		err = secure.HandshakeContext(ctx)
		conn = secure
	}
	if err == nil && d.endpoint.WS {
		err = openWS(conn, d.endpoint)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if d.endpoint.WS {
		return &wsClient{conn: conn, requests: d.requests, buf: make([]byte, readBuffer)}, nil
	}
	return &httpClient{conn: conn, requests: d.requests, buf: make([]byte, readBuffer), unzipper: d.unzipper}, nil
}

// try asks the first question.
func (d *dialer) try(c client) error {
	answer, err := c.ask(0)
	if err != nil {
		return err
	}
	return d.questions[0].check(answer)
}

// dialing is how many connections are opened at a time. It stays below the edge's
// limit of TLS handshakes of one address.
const dialing = 32

// dialAll opens n connections and calls first with each of them, from several
// goroutines. First should make an exchange: a client holds a TLS 1.3 handshake for
// complete before the server does, and so would run ahead of it.
func (d *dialer) dialAll(ctx context.Context, n int, deadline time.Time, first func(client) error) ([]client, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clients := make([]client, n)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, dialing) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				c, err := d.dial(ctx, deadline)
				if err == nil {
					clients[i] = c
					err = first(c)
				}
				if err != nil {
					cancel(fmt.Errorf("connection %d of %d: %w", i+1, n, err))
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, errors.Join(err, closeAll(clients))
	}
	return clients, nil
}

// closeAll closes the connections that were opened.
func closeAll(clients []client) error {
	var errs []error
	for _, c := range clients {
		if c != nil {
			errs = append(errs, c.close())
		}
	}
	return errors.Join(errs...)
}
