// Package edge terminates client connections: HTTPS and HTTP/1.1 requests on
// /v3/<key>, WebSockets on /ws/v3/<key>, and whoever reads the OpenRPC document,
// /openrpc.json. A Node turns what clients send into questions for a
// schema.Resolver and sends back the answers.
//
// Each connection is a session, an actor: one goroutine at a time runs it, and
// none while it is idle. What happens to a connection (bytes arrived, an answer
// is there, time is up, it closed) is a signal to its session; the poller that
// saw bytes runs the session itself, everything else goes through the node's
// pool. A session's fields are touched only by whoever runs it; the two ways in
// from outside are the signal bits and the stack of answered exchanges.
//
// An exchange is one message of a client, a single call or a batch, and what is
// to be answered. On HTTP the exchanges of a connection wait in a queue and leave
// in order; on a WebSocket each leaves when it is complete.
//
// What a session asks is bounded by a share of what all of them may have asked (see
// shares). What is beyond it waits in the session, in order, until answers come; so
// does what is beyond a turn, in which others are not served, until others had theirs.
//
// What becomes of a request or a message is the application's affair: the JSON-RPC
// service, or the echo of NewEcho, by which the rest can be tested.
//
// The Host header says which network a request or a WebSocket is for, where a node asks
// for several; the rest of a request does not depend on it.
//
// What the settings of a key refuse is found at three places: its network and the
// origin once the key is known, before anything else is said about the request; the
// rate once the message is complete, before it is parsed (on a WebSocket it is
// parsed all the same, for the ids); the methods call by call.
//
// What is shed when the process is overloaded (package overload says when) is decided at
// three places as well: the loop closes new connections, the last answer of a queue says
// Connection: close, and the service refuses requests and messages before it parses
// them. A request whose header was accepted is answered.
//
// The edge decodes no result: a worker renders it, and it is spliced behind the
// caller's raw id. It knows nothing of Ethereum beyond package schema, and must
// not link go-ethereum's core or a NATS server.
package edge
