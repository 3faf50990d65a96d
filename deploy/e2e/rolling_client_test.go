//go:build e2e && linux

package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/coder/websocket"
)

// way is how a client asks.
type way int

const (
	httpAnew way = iota // a connection for each request
	httpKept            // a connection for many requests
	overWS
	ways
)

func (w way) String() string { return [ways]string{"HTTP", "HTTP kept alive", "WebSocket"}[w] }

// traveller is a client that knows several edges, has one connection, and goes to the
// next edge when its own refuses a connection or sends it away: with 1001, or with
// Connection: close. It asks nothing twice that may have been answered.
type traveller struct {
	way   way
	addrs []string // of the edges
	at    int      // the one that it is at
	tls   *tls.Config
	key   string

	http  *plainCaller // nil: not connected
	ws    *wsCaller
	moved *atomic.Int64 // how often an edge has sent somebody away
}

// lostError is a call that failed on a connection that was open.
type lostError struct {
	addr string // of the edge
	err  error
}

func (e *lostError) Error() string { return fmt.Sprintf("on a connection to %s: %v", e.addr, e.err) }

func (e *lostError) Unwrap() error { return e.err }

// call implements caller.
func (c *traveller) call(ctx context.Context, message []byte) ([]byte, error) {
	for {
		if err := c.connect(ctx); err != nil {
			return nil, err
		}
		addr := c.addrs[c.at]
		if c.way != overWS {
			answer, err := c.http.call(ctx, message)
			if c.http.conn == nil {
				if c.way == httpKept && err == nil {
					c.next()
					c.moved.Add(1)
				}
				c.http = nil
			}
			return answer, lost(addr, err)
		}
		answer, err := c.ws.call(ctx, message)
		if err == nil {
			return answer, nil
		}
		c.leave()
		if websocket.CloseStatus(err) != websocket.StatusGoingAway {
			return nil, lost(addr, err)
		}
		c.next()
		c.moved.Add(1)
	}
}

// lost says where a call failed. An edge that answers has lost nothing.
func lost(addr string, err error) error {
	if _, answered := errors.AsType[*statusError](err); answered || err == nil {
		return err
	}
	return &lostError{addr, err}
}

// connect opens a connection to the first edge from where the client is that takes it.
func (c *traveller) connect(ctx context.Context) error {
	if c.http != nil || c.ws != nil {
		return nil
	}
	var errs []error
	for range c.addrs {
		err := c.open(ctx, c.addrs[c.at])
		if err == nil {
			return nil
		}
		errs = append(errs, err)
		c.next()
	}
	return fmt.Errorf("no edge takes a connection: %w", errors.Join(errs...))
}

func (c *traveller) open(ctx context.Context, addr string) (err error) {
	if c.way == overWS {
		scheme := "ws://"
		if c.tls != nil {
			scheme = "wss://"
		}
		c.ws, err = dialWS(ctx, scheme+addr+"/ws/v3/"+c.key, c.tls)
		return err
	}
	h := &plainCaller{addr: addr, key: c.key, tls: c.tls, keep: c.way == httpKept, opened: new(atomic.Int64)}
	if err = h.connect(ctx); err == nil {
		c.http = h
	}
	return err
}

func (c *traveller) next() { c.at = (c.at + 1) % len(c.addrs) }

// leave ends the connection.
func (c *traveller) leave() {
	if c.http != nil {
		_ = c.http.conn.Close() // it may have ended
		c.http = nil
	}
	if c.ws != nil {
		_ = c.ws.conn.CloseNow() // it may have ended
		c.ws = nil
	}
}

// party is travellers of every way, with TLS and without, n of each, that begin at
// one of the edges after the other.
func (f *fleet) party(edges []*edge, n int, key string) (all []*traveller) {
	config := f.tls()
	config.ServerName = "localhost"
	moved := new(atomic.Int64)
	for _, secure := range []bool{false, true} {
		var addrs []string
		for _, e := range edges {
			addrs = append(addrs, e.at(secure))
		}
		for w := range ways {
			for i := range n {
				c := &traveller{way: w, addrs: addrs, at: i % len(addrs), key: key, moved: moved}
				if secure {
					c.tls = config
				}
				all = append(all, c)
			}
		}
	}
	return all
}
