package ws

import (
	"encoding/binary"
	"unicode/utf8"
)

// Code says why a connection is closed (RFC 6455 section 7.4).
type Code uint16

// The codes that a server of this kind sends. A client may send others.
const (
	CodeNormal          Code = 1000
	CodeGoingAway       Code = 1001
	CodeProtocolError   Code = 1002
	CodeNoStatus        Code = 1005 // a close frame without a code; never on the wire
	CodeInvalidData     Code = 1007
	CodePolicyViolation Code = 1008
	CodeTooBig          Code = 1009
	CodeInternalError   Code = 1011
	CodeTryAgainLater   Code = 1013
)

// onWire reports whether a close frame may carry the code: what section 7.4.1
// defines, 1012 to 1014 that IANA's registry added, and the two ranges that
// section 7.4.2 leaves to libraries and applications.
func (c Code) onWire() bool {
	switch {
	case c >= 1000 && c <= 1014:
		return c < 1004 || c > 1006
	default:
		return c >= 3000 && c <= 4999
	}
}

// ParseClose splits the payload of a Close event. An empty one is CodeNoStatus,
// which AppendClose turns into an empty one again, so that a server may answer
// with the code that it was sent. The reason aliases the payload.
func ParseClose(payload []byte) (code Code, reason []byte) {
	if len(payload) < 2 {
		return CodeNoStatus, nil
	}
	return Code(binary.BigEndian.Uint16(payload)), payload[2:]
}

// checkClose judges the payload of a client's close frame (sections 5.5.1, 7.4).
// One byte is no code, and so is refused as a wrong one.
func checkClose(payload []byte) *Error {
	if len(payload) == 0 {
		return nil
	}
	code, reason := ParseClose(payload)
	if !code.onWire() {
		return errCloseCode
	}
	if !utf8.Valid(reason) {
		return errCloseReason
	}
	return nil
}
