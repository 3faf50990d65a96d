package ws_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/ommer/ommer/edge/ws"
)

// What tests send: frames as a client builds them, right and wrong.

const (
	opContinuation ws.Op = 0x0
	fin            byte  = 0x80
)

var testMask = [4]byte{0xA1, 0x0B, 0xC2, 0x3D}

// frame is a client's frame, first being its first byte.
func frame(first byte, payload string) []byte {
	switch n := len(payload); {
	case n < 126:
		return framed([]byte{first, 0x80 | byte(n)}, payload)
	case n < 1<<16:
		return framed([]byte{first, 0x80 | 126, byte(n >> 8), byte(n)}, payload)
	default:
		return framed(binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, uint64(n)), payload)
	}
}

// framed puts mask and masked payload behind a header.
func framed(header []byte, payload string) []byte {
	b := append(header, testMask[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^testMask[i%4])
	}
	return b
}

func text(payload string) []byte { return frame(fin|byte(ws.OpText), payload) }
func blob(payload string) []byte { return frame(fin|byte(ws.OpBinary), payload) }
func ping(payload string) []byte { return frame(fin|byte(ws.OpPing), payload) }
func pong(payload string) []byte { return frame(fin|byte(ws.OpPong), payload) }

// begin, more and end are the fragments of a message.
func begin(op ws.Op, payload string) []byte { return frame(byte(op), payload) }
func more(payload string) []byte            { return frame(byte(opContinuation), payload) }
func end(payload string) []byte             { return frame(fin|byte(opContinuation), payload) }

// closing is a close frame with a code.
func closing(code int, reason string) []byte {
	return frame(fin|byte(ws.OpClose), string([]byte{byte(code >> 8), byte(code)})+reason)
}

func join(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// seen is what a Reader made of an input.
type seen struct {
	Events []string
	Code   ws.Code // of the error, or 0
	Reason string
	At     int // how many bytes had been given when the error came
}

var eventNames = map[ws.Event]string{ws.Text: "text", ws.Binary: "binary", ws.Ping: "ping", ws.Pong: "pong", ws.Close: "close"}

// event is one line of what was seen. Long payloads are told apart by a checksum.
func event(kind string, payload []byte) string {
	if len(payload) > 256 {
		return fmt.Sprintf("%s of %d bytes, %08x", kind, len(payload), crc32.ChecksumIEEE(payload))
	}
	return fmt.Sprintf("%s %q", kind, payload)
}

// feed gives the input to the reader in pieces that end at the given offsets.
func feed(t testing.TB, r *ws.Reader, input []byte, ends ...int) seen {
	t.Helper()
	var s seen
	input = append([]byte(nil), input...) // Next changes it
	start := 0
	for _, stop := range append(ends, len(input)) {
		for in := input[start:stop]; len(in) > 0; {
			n, ev, payload, err := r.Next(in)
			if n < 0 || n > len(in) || n == 0 {
				t.Fatalf("Next used %d of %d bytes", n, len(in))
			}
			if err != nil || ev == ws.More {
				if n != len(in) {
					t.Fatalf("Next used %d of %d bytes and wants no more: event %d, error %v", n, len(in), ev, err)
				}
			}
			in = in[n:]
			switch {
			case err != nil:
				if s.Code != 0 {
					t.Fatalf("a second error: %v", err)
				}
				s.Code, s.Reason, s.At = err.Code, err.Reason, stop
			case ev != ws.More:
				s.Events = append(s.Events, event(eventNames[ev], payload))
			}
		}
		r.Release()
		start = stop
	}
	return s
}

// eachByte is the splitting into single bytes.
func eachByte(n int) []int { return everyN(n, 1) }

func everyN(n, size int) []int {
	var ends []int
	for i := size; i < n; i += size {
		ends = append(ends, i)
	}
	return ends
}
