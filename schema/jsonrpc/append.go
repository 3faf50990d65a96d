package jsonrpc

import "strconv"

// AppendResult appends the response to a call. The id and the result are raw
// JSON; an id that is nil is written as null. Members are in go-ethereum's order.
func AppendResult(dst, id, result []byte) []byte {
	dst = appendID(dst, id)
	dst = append(dst, `,"result":`...)
	dst = append(dst, result...)
	return append(dst, '}')
}

// AppendError appends the response that says why a call has no result. The id is
// raw JSON; one that is nil is written as null, as for a message whose id could
// not be told (JSON-RPC 2.0, section 5).
func AppendError(dst, id []byte, e *Error) []byte {
	dst = appendID(dst, id)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, e.Message)
	if len(e.Data) > 0 {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, '}', '}')
}

func appendID(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		return append(dst, `null`...)
	}
	return append(dst, id...)
}
