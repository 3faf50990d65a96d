package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// httpConn exchanges one request at a time over HTTP/1.1 with keep-alive.
type httpConn struct {
	net.Conn
	buf []byte
}

// httpHead is a request up to its last field, which is Content-Length.
func httpHead(e Endpoint) []byte {
	accept := ""
	if e.Gzip {
		accept = "Accept-Encoding: gzip\r\n"
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s", e.Path, e.Addr, accept)
}

// message is what a response brings. It is good until the next exchange.
type message struct {
	body   []byte
	zipped bool
	last   bool // the server closes the connection after it
}

// errStale: the server had closed the connection before it was asked, or while.
var errStale = errors.New("closed before the first byte of a response")

// exchange sends a request and reads its response.
func (c *httpConn) exchange(request []byte) (m message, err error) {
	if _, err = c.Write(request); err != nil {
		return m, fmt.Errorf("%w: %w", errStale, err)
	}
	for have := 0; ; {
		if have == len(c.buf) {
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
		n, err := c.Read(c.buf[have:])
		have += n
		if have > 0 {
			m, size, plain := parseResponse(c.buf[:have])
			switch {
			case !plain:
				return c.readOther(c.buf[:have])
			case size == have:
				return m, nil
			case size > 0 && size < have:
				return m, malformed("%d bytes after a response", have-size)
			}
		}
		switch {
		case err != nil && have == 0 && n == 0:
			return m, fmt.Errorf("%w: %w", errStale, err)
		case err != nil:
			return m, err
		case have > maxAnswer:
			return m, malformed("a response of over %d bytes", maxAnswer)
		}
	}
}

// maxAnswer bounds what a server can make a connection hold, in bytes. The largest
// answer to a batch is 25 MB.
const maxAnswer = 32 << 20

var (
	headEnd     = []byte("\r\n\r\n")
	statusOK    = []byte("HTTP/1.1 200 ")
	lengthField = []byte("\r\nContent-Length: ") // as both net/http and the edge write it
	closeField  = []byte("onnection: close\r\n")
	gzipField   = []byte("ontent-Encoding: gzip\r\n")
)

// parseResponse reads the response at the start of b if it is a plain one: with
// status 200 and the length told in the usual spelling. The size is that of all of
// it, 0 while more is needed.
func parseResponse(b []byte) (m message, size int, plain bool) {
	if n := min(len(b), len(statusOK)); !bytes.Equal(b[:n], statusOK[:n]) {
		return m, 0, false
	}
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return m, 0, len(b) < maxHead
	}
	head := b[:end+2]
	i := bytes.Index(head, lengthField)
	if i < 0 {
		return m, 0, false
	}
	value := head[i+len(lengthField):]
	n, err := strconv.Atoi(string(value[:bytes.IndexByte(value, '\r')]))
	if err != nil || n < 0 || n > maxAnswer {
		return m, 0, false
	}
	start := end + len(headEnd)
	if len(b) < start+n {
		return m, 0, true
	}
	return message{
		body: b[start : start+n], zipped: bytes.Contains(head, gzipField), last: bytes.Contains(head, closeField),
	}, start + n, true
}

// maxHead bounds the header of a response.
const maxHead = 64 << 10

// readOther reads a response of any other form with net/http, from its bytes so far.
func (c *httpConn) readOther(have []byte) (m message, err error) {
	rest := io.LimitReader(c.Conn, maxAnswer)
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(bytes.Clone(have)), rest)), nil)
	if err != nil {
		return m, notHTTP(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	m.body, err = io.ReadAll(resp.Body)
	if err != nil {
		return m, notHTTP(err)
	}
	m.zipped, m.last = resp.Header.Get("Content-Encoding") == "gzip", resp.Close
	if resp.StatusCode != http.StatusOK {
		return m, httpStatus(resp.StatusCode, m.body)
	}
	return m, nil
}

// notHTTP tells what net/http could not parse from a connection that failed.
func notHTTP(err error) error {
	if _, failed := errors.AsType[net.Error](err); failed || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return malformed("%v", err)
}
