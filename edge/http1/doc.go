// Package http1 parses HTTP/1.1 requests and appends responses for a server on
// an event loop.
//
// A [Parser] is fed whatever bytes have arrived and says how many of them it is
// done with and what they completed: a head, a body, or nothing yet. It is
// strict: what net/http refuses it refuses, what it accepts means the same to
// net/http, and where RFC 9112 calls a message ambiguous (section 6.1, section
// 11.2) it refuses although net/http is lenient. Everything that is refused ends
// the connection, because nobody can tell any more where the next request starts.
//
// The events of a connection depend on its bytes alone, never on how they were
// cut into reads, and the work is linear in them.
//
// # Use
//
//	in = append(rest, arrived...)
//	for {
//		n, ev, err := parser.Next(in, &req)
//		in = in[n:]
//		switch {
//		case err != nil:   // answer err.Status and close; with ev == Head, req says what was asked
//		case ev == Head:   // route; perhaps refuse and call parser.Discard; perhaps send Continue
//		case ev == Body:   // answer req.Body
//		default:           // More: keep in until bytes are appended to it
//		}
//	}
//
// Every request is one Head and one Body, also when the body is empty. After the
// Head of an upgrade the caller takes over the bytes that follow and leaves the
// parser.
//
// # Memory
//
// A Parser is about 64 bytes and is meant to be a field of the connection. What
// is parsed aliases the caller's bytes. Only a body that arrives in parts is
// copied, into a buffer from the [Pool] that grows with what has really come;
// between requests a parser holds none. A [Request] is scratch space: one per
// event loop, or from a pool, serves any number of connections.
//
// # Concurrency
//
// A Parser and a Request are used by one goroutine at a time. A Pool and a
// [Date] are shared by all. The package starts no goroutines, does no I/O, reads
// no clock, and must not import net/http outside of tests.
package http1
