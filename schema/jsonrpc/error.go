package jsonrpc

import "strconv"

// Error is the error member of a response (JSON-RPC 2.0, section 5.1).
type Error struct {
	Code    int
	Message string
	Data    []byte // raw JSON, absent when empty
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// The codes that the specification reserves.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Errors that Parse reports. They are shared and must not be changed.
var (
	errParse          = &Error{Code: CodeParse, Message: "parse error"}
	errInvalidRequest = &Error{Code: CodeInvalidRequest, Message: "invalid request"}
	errEmptyBatch     = &Error{Code: CodeInvalidRequest, Message: "empty batch"}
	errBatchTooLarge  = &Error{Code: CodeInvalidRequest, Message: "batch too large"}
)

// MethodNotFound is the error for a call of a method that is not served. It
// repeats the name, as go-ethereum does (rpc/errors.go).
func MethodNotFound(name []byte) *Error {
	return &Error{Code: CodeMethodNotFound, Message: "the method " + string(name) + " does not exist/is not available"}
}

func methodTooLong(n int) *Error {
	return &Error{
		Code:    CodeInvalidRequest,
		Message: "method name too long: " + strconv.Itoa(n) + " > " + strconv.Itoa(MaxMethod),
	}
}
