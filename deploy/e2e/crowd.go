//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/coder/websocket"
)

// crowd is where many clients of one edge come from.
type crowd struct {
	f   *fleet
	e   *edge
	key string
}

// openAtOnce is how many connections are being opened at a time, below the number
// of TLS handshakes that an edge grants to one address.
const openAtOnce = 32

// member is a client with a connection of its own. It is a caller.
type member struct {
	tcp  *net.TCPConn
	conn net.Conn // tcp, or TLS over it
	path string
	read *bufio.Reader // HTTP
	ws   *wsCaller     // nil for HTTP
}

// gather opens n connections, every other one a WebSocket, and asks q over each.
func (c *crowd) gather(ctx context.Context, n int, secure bool, q question) ([]*member, error) {
	members, ended := make([]*member, n), make(chan error, openAtOnce)
	for first := range openAtOnce {
		go func() {
			for i := first; i < n; i += openAtOnce {
				m, err := c.join(ctx, secure, i%2 == 0)
				if err == nil {
					members[i] = m
					err = ask(ctx, m, q)
				}
				if err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	var errs []error
	for range openAtOnce {
		errs = append(errs, <-ended)
	}
	return members, errors.Join(errs...)
}

// join opens one connection.
func (c *crowd) join(ctx context.Context, secure, overWS bool) (*member, error) {
	addr := c.e.http
	if secure {
		addr = c.e.https
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	m := &member{tcp: conn.(*net.TCPConn), conn: conn, path: "/v3/" + c.key}
	if secure {
		config := c.f.tls()
		config.ServerName = "localhost"
		client := tls.Client(conn, config)
		if err = client.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		m.conn = client
	}
	if !overWS {
		m.read = bufio.NewReader(m.conn)
		return m, nil
	}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return m.conn, nil }}
	ws, _, err := websocket.Dial(ctx, "ws://localhost/ws"+m.path, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	m.ws = &wsCaller{ws}
	return m, nil
}

// call implements caller.
func (m *member) call(ctx context.Context, message []byte) ([]byte, error) {
	if m.ws != nil {
		return m.ws.call(ctx, message)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+m.path, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	deadline, _ := ctx.Deadline()
	if err = m.conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if err = req.Write(m.conn); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(m.read, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = &statusError{resp.StatusCode, string(body)}
	}
	return body, err
}

// parting is how a client leaves.
type parting int

const (
	politely parting = iota // with a WebSocket's closing handshake, or TLS's alert
	withFIN                 // the connection is closed and nothing said
	withRST                 // the connection is reset
	partings
)

// leave ends the connection. Its errors are of no interest: either side may have
// been first.
func (m *member) leave(p parting) {
	switch p {
	case politely:
		if m.ws != nil {
			_ = m.ws.conn.Close(websocket.StatusNormalClosure, "")
		}
		_ = m.conn.Close()
		return
	case withRST:
		_ = m.tcp.SetLinger(0)
	}
	_ = m.tcp.Close()
	if m.ws != nil {
		_ = m.ws.conn.CloseNow() // ends its goroutine
	}
}

// part lets everybody leave, each in another way than those beside it.
func part(members []*member) {
	ended := make(chan struct{})
	for first := range openAtOnce {
		go func() {
			for i := first; i < len(members); i += openAtOnce {
				if m := members[i]; m != nil {
					m.leave(parting(i/2) % partings)
				}
			}
			ended <- struct{}{}
		}()
	}
	for range openAtOnce {
		<-ended
	}
}
