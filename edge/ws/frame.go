package ws

import (
	"encoding/binary"
	"unicode/utf8"
)

// Op is a frame's opcode (RFC 6455 section 5.2).
type Op byte

// The opcodes that a server sends. It never fragments, so there is no
// continuation among them.
const (
	OpText   Op = 0x1
	OpBinary Op = 0x2
	OpClose  Op = 0x8
	OpPing   Op = 0x9
	OpPong   Op = 0xA

	opContinuation Op = 0x0
)

// control reports whether frames of this kind may come between the fragments of
// a message.
func (o Op) control() bool { return o&0x8 != 0 }

// Bits of the first two bytes of a header.
const (
	bitFin     = 0x80
	bitsRsv    = 0x70
	bitsOp     = 0x0F
	bitMask    = 0x80
	bitsLength = 0x7F
	lengthIn2  = 126 // the length follows in 2 bytes
	lengthIn8  = 127 // the length follows in 8 bytes
	maskBytes  = 4
)

// MaxHeader is the length of the longest header that AppendHeader writes.
const MaxHeader = 2 + 8

// AppendHeader appends the header of a frame whose payload of the given length
// follows: the only one of its message, not masked, as a server's are. It panics
// when a control frame would be longer than the 125 bytes that it may be.
func AppendHeader(dst []byte, op Op, length int) []byte {
	if op.control() && length > maxControl {
		panic("ws: control frame over 125 bytes")
	}
	first := bitFin | byte(op)
	switch {
	case length < lengthIn2:
		return append(dst, first, byte(length))
	case length <= 0xFFFF:
		return append(dst, first, lengthIn2, byte(length>>8), byte(length))
	default:
		return binary.BigEndian.AppendUint64(append(dst, first, lengthIn8), uint64(length))
	}
}

// AppendFrame appends a whole frame. The payload is copied, and must be UTF-8
// when op is OpText. It panics as AppendHeader does; the payload of a Ping event
// always fits a pong.
func AppendFrame(dst []byte, op Op, payload []byte) []byte {
	return append(AppendHeader(dst, op, len(payload)), payload...)
}

// AppendClose appends a close frame. The reason must be UTF-8 and is cut, between
// characters, to the 123 bytes that fit. With CodeNoStatus the frame is empty. It
// panics on a code that must not be on the wire; those of an Error and of
// ParseClose may be.
func AppendClose(dst []byte, code Code, reason string) []byte {
	if code == CodeNoStatus {
		return AppendHeader(dst, OpClose, 0)
	}
	if !code.onWire() {
		panic("ws: close code that must not be sent")
	}
	if len(reason) > maxControl-2 {
		end := maxControl - 2
		for end > 0 && !utf8.RuneStart(reason[end]) {
			end--
		}
		reason = reason[:end]
	}
	dst = AppendHeader(dst, OpClose, 2+len(reason))
	dst = binary.BigEndian.AppendUint16(dst, uint16(code))
	return append(dst, reason...)
}
