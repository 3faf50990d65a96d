package load

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// wsConn is a WebSocket (RFC 6455) without extensions. One goroutine may read while others write.
type wsConn struct {
	net.Conn
	buf     []byte
	have    int // bytes of buf that were read
	done    int // of these, those of the last frame
	timeout time.Duration
	parts   []byte // of a message in several frames, as far as it was read
	partial bool   // there is one

	write sync.Mutex // a pong may come between requests
}

// Opcodes, RFC 6455 section 5.2.
const (
	opMore   = 0x0 // continues a message
	opText   = 0x1
	opBinary = 0x2
	opClose  = 0x8
	opPing   = 0x9
	opPong   = 0xA
)

const finBit, maskBit = 0x80, 0x80

// frameMask is the masking key of every frame. It ought to be random against caches
// between client and server that take a frame for HTTP; what is sent here is fixed
// beforehand, and the server's work is the same.
var frameMask = [4]byte{0x37, 0xfa, 0x21, 0x3d}

// appendFrame appends a client's frame.
func appendFrame(b []byte, op byte, payload []byte) []byte {
	b = append(b, finBit|op)
	switch n := len(payload); {
	case n < 126:
		b = append(b, maskBit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, maskBit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, maskBit|127), uint64(n))
	}
	b = append(b, frameMask[:]...)
	for i, c := range payload {
		b = append(b, c^frameMask[i%4])
	}
	return b
}

// The key of every handshake, and what the server makes of it: the example of RFC
// 6455 section 1.3. It is there to find servers that are none.
const (
	wsKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	wsAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// openWS makes a WebSocket of a connection.
func openWS(conn net.Conn, e Endpoint, timeout time.Duration) (*wsConn, error) {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n", e.Path, e.Addr, wsKey)
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, 1<<10)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, notHTTP(err)
	}
	switch {
	case resp.StatusCode != http.StatusSwitchingProtocols:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // as much as there is
		return nil, handshakeStatus(resp.StatusCode, body)
	case resp.Header.Get("Sec-Websocket-Accept") != wsAccept:
		return nil, malformed("a WebSocket handshake with another key")
	}
	c := &wsConn{Conn: conn, buf: make([]byte, readBuffer), timeout: timeout}
	early, _ := r.Peek(r.Buffered())
	c.have = copy(c.buf, early)
	return c, nil
}

// send writes a frame.
func (c *wsConn) send(frame []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	err := c.SetWriteDeadline(time.Now().Add(c.timeout))
	if err == nil {
		_, err = c.Write(frame)
	}
	return err
}

// receive returns the next message, good until the next call. After a time-out it
// can be called again.
func (c *wsConn) receive() ([]byte, error) {
	for {
		f, err := c.frame()
		switch {
		case err != nil:
			return nil, err
		case f.op >= opClose:
			if err := c.control(f.op, f.payload); err != nil {
				return nil, err
			}
			continue
		case (f.op == opMore) != c.partial:
			return nil, malformed("WebSocket frames out of order: %s", quote(f.payload))
		case f.fin && !c.partial:
			return f.payload, nil
		case len(c.parts)+len(f.payload) > maxAnswer:
			return nil, malformed("a message of over %d bytes", maxAnswer)
		}
		c.parts, c.partial = append(c.parts, f.payload...), true
		if f.fin {
			whole := c.parts
			c.parts, c.partial = c.parts[:0], false
			return whole, nil
		}
	}
}

// pong waits for a ping and answers it, and those that came with it: nothing is left
// in the buffer, whose contents no poller knows of.
func (c *wsConn) pong() error {
	for {
		f, err := c.frame()
		if err != nil {
			return err
		}
		if f.op < opClose {
			return malformed("an answer to no question: %s", quote(f.payload))
		}
		if err := c.control(f.op, f.payload); err != nil {
			return err
		}
		if c.done == c.have {
			return nil
		}
	}
}

// frame returns the next frame, good until the next call.
func (c *wsConn) frame() (frame, error) {
	c.have = copy(c.buf, c.buf[c.done:c.have])
	c.done = 0
	for {
		f, size, err := parseFrame(c.buf[:c.have])
		if err != nil || size > 0 {
			c.done = size
			return f, err
		}
		if c.have == len(c.buf) {
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
		n, err := c.Read(c.buf[c.have:])
		c.have += n
		if err != nil && n == 0 {
			return frame{}, err
		}
	}
}

// control answers a ping or a close.
func (c *wsConn) control(op byte, payload []byte) error {
	switch op {
	case opPing:
		return c.send(appendFrame(nil, opPong, payload))
	case opClose:
		const noCode = 1005 // RFC 6455 section 7.1.5
		why := closedWith(noCode, nil)
		if len(payload) >= 2 {
			why = closedWith(binary.BigEndian.Uint16(payload), payload[2:])
		}
		_ = c.send(appendFrame(nil, opClose, payload[:min(len(payload), 2)])) // it may be gone
		return why
	default:
		return nil // nobody asked for a pong, which is allowed
	}
}

// exchange sends a request and returns the next message.
func (c *wsConn) exchange(request []byte) (message, error) {
	if _, err := c.Write(request); err != nil {
		return message{}, err
	}
	body, err := c.receive()
	if err == nil && c.done < c.have {
		rest := c.buf[c.done:c.have]
		if f, size, _ := parseFrame(rest); size > 0 && f.op < opClose && idOf(f.payload) != "" {
			// One of the two is an answer to this request or to one before it, which
			// had theirs: which one depends on when they came.
			return message{}, &Failure{KindTwice, quote(f.payload)}
		}
		if rest[0]&0x0f < opClose {
			return message{}, malformed("%d bytes after the answer: %s", c.have-c.done, quote(bytes.Clone(c.buf[c.done:c.have])))
		}
	}
	return message{body: body}, err
}

// frame is what a server sends at a time.
type frame struct {
	op      byte
	fin     bool // the last of its message
	payload []byte
}

// parseFrame reads the server's frame at the start of b. The size is 0 while more is
// needed.
func parseFrame(b []byte) (f frame, size int, err error) {
	if len(b) < 2 {
		return f, 0, nil
	}
	f.op, f.fin = b[0]&0x0f, b[0]&finBit != 0
	switch f.op {
	case opMore, opText, opBinary, opClose, opPing, opPong:
	default:
		return f, 0, malformed("WebSocket frame %s", quote(b))
	}
	const reserved = 0x70
	if b[0]&reserved != 0 || b[1]&maskBit != 0 || f.op >= opClose && (b[1] >= 126 || !f.fin) {
		return f, 0, malformed("WebSocket frame %s", quote(b))
	}
	start, n := 2, uint64(b[1])
	switch {
	case n == 126 && len(b) >= 4:
		start, n = 4, uint64(binary.BigEndian.Uint16(b[2:]))
	case n == 127 && len(b) >= 10:
		start, n = 10, binary.BigEndian.Uint64(b[2:])
	case n >= 126:
		return f, 0, nil
	}
	if n > maxAnswer {
		return f, 0, malformed("a message of %d bytes", n)
	}
	size = start + int(n)
	if len(b) < size {
		return f, 0, nil
	}
	f.payload = b[start:size]
	return f, size, nil
}
