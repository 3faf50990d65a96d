// Package jsonrpc is the envelope of JSON-RPC 2.0: it takes messages apart into
// calls and writes responses. It knows no methods and does no I/O.
//
// The parser is a scanner of its own over RFC 8259, because every byte that a
// stranger sends goes through it: one pass, no copies, no allocations for a valid
// message, time linear in its length, nesting bounded. Its verdict on what is
// JSON is that of encoding/json, except that it also refuses invalid UTF-8 and
// nests less deep. The ids and parameters of calls stay raw: an id is echoed byte
// for byte, and who knows the method reads its parameters.
//
// There is no state: every function may be called from any goroutine. What Parse
// returns aliases the message, so the message must stay unchanged while its calls
// are in use.
package jsonrpc
