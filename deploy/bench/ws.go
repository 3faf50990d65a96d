package main

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// wsClient asks over a WebSocket (RFC 6455). It understands whole text messages,
// and pings: what the edge sends to a client that behaves.
type wsClient struct {
	conn     net.Conn
	requests [][]byte
	buf      []byte
}

// Opcodes, RFC 6455 section 5.2.
const (
	opText = 0x1
	opPing = 0x9
	opPong = 0xA
)

const finBit, maskBit = 0x80, 0x80

// frameMask is the masking key of every frame. It ought to be random against caches
// between client and server; there are none here, and the server's work is the same.
var frameMask = [4]byte{0x37, 0xfa, 0x21, 0x3d}

// errFrame: a frame is not one that the load understands.
var errFrame = errors.New("unexpected WebSocket frame")

// appendFrame appends a client's frame with a payload of less than 64 KiB.
func appendFrame(b []byte, op byte, payload []byte) []byte {
	b = append(b, finBit|op)
	if n := len(payload); n < 126 {
		b = append(b, maskBit|byte(n))
	} else {
		b = binary.BigEndian.AppendUint16(append(b, maskBit|126), uint16(n))
	}
	b = append(b, frameMask[:]...)
	for i, c := range payload {
		b = append(b, c^frameMask[i%4])
	}
	return b
}

// openWS makes a WebSocket of a connection. The server's Sec-WebSocket-Accept is not
// verified: it is there to find servers that are none.
func openWS(conn net.Conn, e endpoint) error {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", e.Path, e.Addr)
	if _, err := conn.Write(request); err != nil {
		return err
	}
	// The server says nothing after its response until it is asked something.
	var buf [1 << 10]byte
	for have := 0; ; {
		n, err := conn.Read(buf[have:])
		have += n
		if bytes.HasSuffix(buf[:have], headEnd) {
			if !bytes.HasPrefix(buf[:have], []byte("HTTP/1.1 101 ")) {
				return fmt.Errorf("%w: %s", errResponse, buf[:have])
			}
			return nil
		}
		if err != nil {
			return err
		}
		if have == len(buf) {
			return fmt.Errorf("%w: %s", errResponse, buf[:have])
		}
	}
}

func (c *wsClient) ask(i int) ([]byte, error) {
	if _, err := c.conn.Write(c.requests[i]); err != nil {
		return nil, err
	}
	return c.next(opText)
}

// pong waits for a ping and answers it.
func (c *wsClient) pong() error {
	_, err := c.next(opPing)
	return err
}

// next returns the payload of the next message of a kind, which must be the last
// thing that was sent. It answers pings.
func (c *wsClient) next(want byte) ([]byte, error) {
	for have := 0; ; {
		if have == len(c.buf) {
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
		n, err := c.conn.Read(c.buf[have:])
		have += n
		for {
			op, payload, size, perr := parseFrame(c.buf[:have])
			if perr != nil {
				return nil, perr
			}
			if size == 0 {
				break
			}
			if op == opPing {
				if _, werr := c.conn.Write(appendFrame(nil, opPong, payload)); werr != nil {
					return nil, werr
				}
			} else if want != op {
				return nil, fmt.Errorf("%w: an answer to no question", errFrame)
			}
			if op == want {
				if size < have {
					return nil, fmt.Errorf("%w: %d bytes after the last one", errFrame, have-size)
				}
				return payload, nil
			}
			have = copy(c.buf, c.buf[size:have])
		}
		if err != nil {
			return nil, err
		}
	}
}

// raw is the socket below the connection and its TLS.
func (c *wsClient) raw() (syscall.RawConn, error) {
	conn := c.conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%T has no socket", conn)
	}
	return socket.SyscallConn()
}

func (c *wsClient) close() error { return c.conn.Close() }

// parseFrame reads the server's frame at the start of b: a whole text message or a
// ping. size is 0 while more is needed.
func parseFrame(b []byte) (op byte, payload []byte, size int, err error) {
	if len(b) < 2 {
		return 0, nil, 0, nil
	}
	if b[0] != finBit|opText && b[0] != finBit|opPing || b[1]&maskBit != 0 {
		return 0, nil, 0, fmt.Errorf("%w: %.300q", errFrame, b)
	}
	start, n := 2, uint64(b[1])
	switch {
	case n == 126 && len(b) >= 4:
		start, n = 4, uint64(binary.BigEndian.Uint16(b[2:]))
	case n == 127 && len(b) >= 10:
		start, n = 10, binary.BigEndian.Uint64(b[2:])
	case n >= 126:
		return 0, nil, 0, nil
	}
	if n > maxAnswer {
		return 0, nil, 0, fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	size = start + int(n)
	if len(b) < size {
		return 0, nil, 0, nil
	}
	return b[0] & 0x0f, b[start:size], size, nil
}
