package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// httpClient asks over HTTP/1.1 with keep-alive. It understands what the measured
// servers send, a status line, fields and a body of known length, and no more.
type httpClient struct {
	conn     net.Conn
	requests [][]byte
	buf      []byte
	unzipper *unzipper // nil if the answers are not compressed
}

// httpRequest is a request as it is sent.
func httpRequest(e endpoint, body string) []byte {
	accept := ""
	if e.Gzip {
		accept = "Accept-Encoding: gzip\r\n"
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		e.Path, e.Addr, accept, len(body), body)
}

func (c *httpClient) ask(i int) ([]byte, error) {
	if _, err := c.conn.Write(c.requests[i]); err != nil {
		return nil, err
	}
	for have := 0; ; {
		if have == len(c.buf) {
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
		n, err := c.conn.Read(c.buf[have:])
		have += n
		body, size, perr := parseResponse(c.buf[:have])
		switch {
		case perr != nil:
			return nil, perr
		case size == have && size > 0 && c.unzipper != nil:
			return c.unzipper.unzip(i, body)
		case size == have && size > 0:
			return body, nil
		case size > 0 && size < have:
			return nil, fmt.Errorf("%w: %d bytes after it", errResponse, have-size)
		case err != nil:
			return nil, err
		case have > maxAnswer:
			return nil, fmt.Errorf("%w: over %d bytes", errResponse, maxAnswer)
		}
	}
}

func (c *httpClient) close() error { return c.conn.Close() }

// maxAnswer bounds what a server can make a connection hold, in bytes.
const maxAnswer = 1 << 20

// errResponse: a response is not one that the load understands.
var errResponse = errors.New("unexpected HTTP response")

var (
	headEnd     = []byte("\r\n\r\n")
	statusOK    = []byte("HTTP/1.1 200 ")
	lengthField = []byte("\r\nContent-Length: ") // as both net/http and the edge write it
)

// parseResponse reads the response at the start of b and returns its body and its
// whole size, 0 while more is needed.
func parseResponse(b []byte) (body []byte, size int, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return nil, 0, nil
	}
	head := b[:end+2]
	if !bytes.HasPrefix(head, statusOK) {
		return nil, 0, fmt.Errorf("%w: %.300s", errResponse, b)
	}
	i := bytes.Index(head, lengthField)
	if i < 0 {
		return nil, 0, fmt.Errorf("%w: no Content-Length: %s", errResponse, head)
	}
	value := head[i+len(lengthField):]
	n, err := strconv.Atoi(string(value[:bytes.IndexByte(value, '\r')]))
	if err != nil || n < 0 || n > maxAnswer {
		return nil, 0, fmt.Errorf("%w: bad Content-Length: %s", errResponse, head)
	}
	start := end + len(headEnd)
	if len(b) < start+n {
		return nil, 0, nil
	}
	return b[start : start+n], start + n, nil
}
