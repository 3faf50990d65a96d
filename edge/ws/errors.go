package ws

import "strconv"

// Error is why a connection has to end: what the close frame is to say.
type Error struct {
	// Code is CodeProtocolError, CodeInvalidData or CodeTooBig.
	Code Code
	// Reason is a constant phrase without anything of the client's in it.
	Reason string
}

// Error returns the code and the reason.
func (e *Error) Error() string {
	return "websocket: " + strconv.Itoa(int(e.Code)) + " " + e.Reason
}

// What a Reader refuses. The values are shared and must not be changed; being
// shared, a client in error costs no allocation.
var (
	errReservedBits   = &Error{CodeProtocolError, "reserved bits set"}
	errOpcode         = &Error{CodeProtocolError, "reserved opcode"}
	errUnmasked       = &Error{CodeProtocolError, "frame not masked"}
	errControlParted  = &Error{CodeProtocolError, "fragmented control frame"}
	errControlLong    = &Error{CodeProtocolError, "control frame with a long length"}
	errNoMessage      = &Error{CodeProtocolError, "continuation without a message"}
	errMessageOpen    = &Error{CodeProtocolError, "new message before the last one ended"}
	errLengthSign     = &Error{CodeProtocolError, "length out of range"}
	errLengthEncoding = &Error{CodeProtocolError, "length not in its shortest form"}
	errCloseCode      = &Error{CodeProtocolError, "invalid close code"}
	errCloseReason    = &Error{CodeInvalidData, "close reason is not UTF-8"}
	errText           = &Error{CodeInvalidData, "text is not UTF-8"}
	errTooBig         = &Error{CodeTooBig, "message too big"}
)
