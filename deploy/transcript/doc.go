// Package transcript plays conversations with an edge that are written down as text
// files and compares what the edge says with what is written. The files, in
// testdata, are the contract of the service by example: Rows lists every situation
// that was decided, and a test fails when one has no conversation.
//
// Two tests play the same files: the one of this package against an edge.Node over
// a table of answers, and the one in deploy/e2e against the programs, a NATS server
// and an upstream node. Both serve the blocks of Sample, so both must hear the same
// bytes. `make golden` writes what the first one hears; nothing but a look at the
// difference says whether it is right.
//
// # The files
//
// A file begins with directives, of which `# kind` is one:
//
//	calls      each line sent is a JSON text, each line heard the JSON text that
//	           answers it or "(nothing)". Played over HTTP and over WebSocket, as
//	           text and as binary messages, with and without TLS: the answers are
//	           the same.
//	http       lines sent are bytes, each ended by CRLF unless it ends with a
//	           backslash. What is heard are responses, the bytes of a body in one
//	           line, and "(end)" when the edge ends the connection in good order: not
//	           by a reset, and with TLS not without a close_notify. Played with and
//	           without TLS.
//	websocket  lines sent are `text`, `binary`, `ping`, `pong` with a payload,
//	           `close` with a code and a quoted reason, `frame` with the first byte
//	           of a frame in hexadecimal and a payload that is masked, or `raw` with
//	           bytes as they go out. What is heard are frames in the same words, and
//	           "(end)"; "..." stands for any number of frames.
//
// A conversation begins with `== row: variant`, has a new connection in each way it
// is played, and may have directives of its own:
//
//	# --limit-batch=3      a flag of the edge. In the file's head: for all of it
//	# key --rate=1         a setting of its key, a flag of `ommer keys create`
//	# only over WS, WSS: why
//	# in process only: why
//	# end to end only: why
//	# answers by id        frames that follow one another are sorted by their id
//
// Then come, in their order, what is sent (-->), what is heard (<--, where "?" is
// anything, for `make golden` to fill in) and what happens besides (!, see acts).
// Lines of // are for readers. In what is sent, {key} is the API key, {0x0a} bytes in
// hexadecimal and {text*9} a repetition. In what is heard, {date} is a Date that is
// now, and {0x0a} a byte that cannot be printed.
//
// A conversation that does not end with "(end)" is followed by something of the
// player's own whose answer is known and must be the next: the connection is still
// there, and both sides agree where the next message begins.
//
// # Rules
//
// The package imports neither the edge nor the bus nor the workers, so that
// end-to-end tests can use it; the Worlds in which files are played do that. It is
// for tests only.
package transcript
