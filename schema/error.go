package schema

import "github.com/ommer/ommer/schema/jsonrpc"

// Code says on the bus why a question has no result. Values travel in frames:
// append only, and an unknown one means Internal to whoever reads it.
type Code uint8

// The codes.
const (
	// OK is the absence of an error; no Error carries it.
	OK Code = iota
	// Internal: something failed that the caller can do nothing about.
	Internal
	// Timeout: no answer within the deadline.
	Timeout
	// Overloaded: the worker had no room. Another one may have.
	Overloaded
	// Pruned: every source that was asked has dropped this part of history.
	Pruned
	// Draining: the worker is leaving and did not look. Another one will.
	Draining
	// NoWorkers: nobody serves the network at the moment.
	NoWorkers
	// Unsupported: the worker does not know this version or kind of question.
	Unsupported
	// Unavailable: the worker reaches no node. Another one may.
	Unavailable

	// Codes is their number: an array of this length can be indexed by any Code that
	// this package has made.
	Codes = int(iota)
)

var codeNames = [...]string{"ok", "internal", "timeout", "overloaded", "pruned", "draining", "no-workers", "unsupported", "unavailable"}

// String returns a short name, fit for a metric's label.
func (c Code) String() string {
	if int(c) >= len(codeNames) {
		return "internal"
	}
	return codeNames[c]
}

// Error is a failure as it crosses the bus. Detail is for the operator's log and
// is never sent to a caller.
type Error struct {
	Code   Code
	Detail string
}

// Error returns the code and the detail.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Code.String()
	}
	return e.Code.String() + ": " + e.Detail
}

// Errors that callers see. They are shared and must not be changed.
var (
	errInternal = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "internal error"}
	errTimeout  = &jsonrpc.Error{Code: CodeTimeout, Message: "request timed out"}
	errPruned   = &jsonrpc.Error{Code: CodePruned, Message: "pruned history unavailable"}
	errLimit    = &jsonrpc.Error{
		Code:    CodeLimit,
		Message: "limit exceeded",
		Data:    []byte(`{"reason":"overloaded","backoff_seconds":1}`),
	}
)

// Codes of JSON-RPC errors beyond those that the specification reserves.
const (
	CodeTimeout  = -32002 // also the code of a refused key, as providers do
	CodeTooLarge = -32003
	CodeLimit    = -32005 // EIP-1474: limit exceeded
	CodePruned   = 4444   // EIP-4444, as go-ethereum answers
)

// Reply translates the error into what the caller is sent. It is the only place
// that does so.
func (e *Error) Reply() *jsonrpc.Error {
	switch e.Code {
	case Timeout, Unavailable:
		return errTimeout
	case Overloaded, Draining:
		return errLimit
	case Pruned:
		return errPruned
	default:
		return errInternal
	}
}
