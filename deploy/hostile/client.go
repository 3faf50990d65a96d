package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// wire is what a client speaks.
type wire struct {
	ws, secure bool
}

var (
	wireHTTP  = wire{}
	wireHTTPS = wire{secure: true}
	wireWS    = wire{ws: true}
	wireWSS   = wire{ws: true, secure: true}
	wires     = []wire{wireHTTPS, wireWSS, wireHTTP, wireWS}
)

// answerTime bounds an exchange of an honest client, longer than any time-out of the
// edge that could end it.
const answerTime = 15 * time.Second

// client is an honest client with one connection and one request in flight.
type client struct {
	conn net.Conn
	head string // of an HTTP request, up to the length of its body
	read *bufio.Reader
	ws   *websocket.Conn // nil for HTTP
}

// dial opens a connection from 127.0.0.1.
func dial(ctx context.Context, s site, w wire) (*client, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr(w.secure))
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, head: "POST /v3/" + s.Key + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "}
	if w.secure {
		cfg, err := s.tls()
		if err != nil {
			c.close()
			return nil, err
		}
		secure := tls.Client(conn, cfg)
		c.conn = secure
		if err = secure.HandshakeContext(ctx); err != nil {
			c.close()
			return nil, err
		}
	}
	if !w.ws {
		c.read = bufio.NewReader(c.conn)
		return c, nil
	}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return c.conn, nil }}
	c.ws, _, err = websocket.Dial(ctx, "ws://localhost/ws/v3/"+s.Key, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		c.close()
		return nil, err
	}
	c.ws.SetReadLimit(1 << 20)
	return c, nil
}

// ask sends a message and returns the answer to it.
func (c *client) ask(ctx context.Context, message []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if c.ws != nil {
		if err := c.ws.Write(ctx, websocket.MessageText, message); err != nil {
			return nil, err
		}
		_, answer, err := c.ws.Read(ctx)
		return answer, err
	}
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(fmt.Appendf(nil, "%s%d\r\n\r\n%s", c.head, len(message), message)); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %.200s", resp.Status, bytes.TrimSpace(body))
	}
	return body, err
}

// close ends the connection. Its errors are of no interest: everything that was
// asked has been answered, or the failure has been counted.
func (c *client) close() {
	if c.ws != nil {
		_ = c.ws.CloseNow()
	}
	_ = c.conn.Close()
}
