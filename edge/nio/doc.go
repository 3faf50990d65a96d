// Package nio is an event loop for very many connections: accepting, TLS,
// reading, bounded writing and time-outs, without a goroutine per connection once
// its TLS handshake is done. It is the only importer of nbio, and knows nothing of
// HTTP or of what is asked.
//
// # Pulling
//
// The loop never reads. It tells a connection's Handler that something may be
// there, and the handler's owner, called the session here, calls Conn.Read until
// ErrAgain, from whatever goroutine runs it. Readiness is edge-triggered: it is
// told once, so a session that stops before ErrAgain must come back by itself.
// Not reading is the pause; the kernel's window then holds the peer back.
//
// # Concurrency
//
// Calls to a Handler come from the goroutines of the loop, several at a time for
// one connection (Readable beside Expired), and must return soon: every other
// connection of the same poller waits meanwhile. They may call the Conn's
// methods. Read, Write, SetTimeout and CloseAfterFlush belong to one goroutine at a
// time per connection; everything else of a Conn may be called from anywhere. Closed is
// the last call: none is running when it is made and none comes after.
//
// # The end of a connection
//
// A peer that shuts down its sending side is served: Read returns what it sent,
// then io.EOF, and what is written still reaches it. nbio by itself closes such a
// connection at once, so the loop registers each socket a second time, without
// EPOLLRDHUP (see adopt_linux.go). Should a later nbio no longer allow that, the
// loop says so in its log and a half-closed connection ends without an answer.
//
// Sockets are closed by their poller and by nobody else: Conn.Close only shuts
// the socket down, and the hang-up event that follows ends it. A file descriptor
// is therefore never handed out again while an event of its former connection is
// still to be dispatched. The one exception is a reset that arrives between the
// two system calls of a write that did not fit.
//
// # Memory
//
// The engine's table has one pointer for each file that the process may open
// (the hard RLIMIT_NOFILE, at most 2 Mi): 16 MB of address space at worst, of which
// only the pages with open descriptors are touched.
//
// On systems with kqueue the same code runs, level-triggered: a session that
// pauses is told again and again. That is right, but it is not fast.
package nio
