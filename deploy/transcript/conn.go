package transcript

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience bounds every wait. It only decides how long a failure takes.
const patience = 20 * time.Second

// maxSends is how many sends a connection may be behind.
const maxSends = 1 << 10

// conn is a client's connection. Sending never waits for the edge to read: one that
// has refused may not.
type conn struct {
	net.Conn
	in  *bufio.Reader
	out chan []byte

	written chan struct{} // closed when nothing more is written
}

// dial connects to an edge, with TLS unless config is nil. A slow client takes little
// that it does not read.
func dial(ctx context.Context, addr string, config *tls.Config, slow bool) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if slow {
		if err := nc.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
			return nil, errors.Join(err, nc.Close())
		}
	}
	if config != nil {
		secure := tls.Client(nc, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		nc = secure
	}
	c := &conn{Conn: nc, in: bufio.NewReader(nc), out: make(chan []byte, maxSends), written: make(chan struct{})}
	go func() {
		defer close(c.written)
		var err error
		for b := range c.out {
			switch {
			case err != nil: // what the edge said instead can still be read
			case b == nil:
				err = nc.(interface{ CloseWrite() error }).CloseWrite()
			default:
				_, err = nc.Write(b)
			}
		}
	}()
	return c, nil
}

func (c *conn) send(b []byte) { c.out <- b }

// hangUp ends the sending, with TLS by a close_notify.
func (c *conn) hangUp() { c.out <- nil }

// close ends the connection without a word.
func (c *conn) close() {
	close(c.out)
	if t, ok := c.Conn.(*tls.Conn); ok {
		_ = t.NetConn().Close() // what is being written fails then
	} else {
		_ = c.Conn.Close()
	}
	<-c.written
}

// wait sets the time for what is read next.
func (c *conn) wait() error { return c.SetReadDeadline(time.Now().Add(patience)) }

// ending says what an error of reading stands for.
func ending(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return end
	case errors.Is(err, io.ErrUnexpectedEOF): // TLS: no close_notify
		return "(cut off)"
	case errors.Is(err, syscall.ECONNRESET):
		return "(reset)"
	default:
		return fmt.Sprintf("(%v)", err)
	}
}

// response reads one response and returns its lines, and the ending if that came
// first. withBody says that a body is sent where a length is given, which it is not
// to a HEAD.
func (c *conn) response(withBody bool) (lines []string, status int) {
	if err := c.wait(); err != nil {
		return []string{ending(err)}, 0
	}
	length := 0
	for {
		line, err := c.in.ReadString('\n')
		text, whole := strings.CutSuffix(line, "\r\n")
		if line != "" {
			if !whole {
				text = line
			}
			name, value, _ := strings.Cut(text, ": ")
			switch {
			case name == "Date" && isNow(value):
				text = "Date: {date}"
			case name == "Content-Length":
				if length, err = strconv.Atoi(value); err != nil {
					return append(lines, fmt.Sprintf("(%v)", err)), status
				}
			case len(lines) == 0 && len(text) > len("HTTP/1.1 200"):
				status, _ = strconv.Atoi(text[len("HTTP/1.1 "):len("HTTP/1.1 200")]) // 0 shows as a difference
			}
			lines = append(lines, printable([]byte(text)))
		}
		if err != nil {
			return append(lines, ending(err)), status
		}
		if whole && text == "" {
			break
		}
	}
	if !withBody || length == 0 {
		return lines, status
	}
	body := make([]byte, length)
	n, err := io.ReadFull(c.in, body)
	lines = append(lines, printable(body[:n]))
	if err != nil {
		lines = append(lines, ending(err))
	}
	return lines, status
}

// isNow says whether a Date is right, give or take a clock that is a little off.
func isNow(value string) bool {
	t, err := time.Parse(http.TimeFormat, value)
	return err == nil && time.Since(t).Abs() < 10*time.Minute
}
