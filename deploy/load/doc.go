// Package load asks a service that speaks the uncle methods, as many clients at once,
// and measures what they see. `ommer bench` and deploy/bench are made of it.
//
// # Two loops
//
// In a closed loop each connection (each place in flight of a WebSocket) sends its next
// request when it has the answer to the last one. It finds how much a server can do. Its
// latencies flatter a server that stalls: while it does, nobody asks, and a stall of a
// second that would have met a thousand requests is counted once. This is known as
// coordinated omission.
//
// In an open loop requests are due at times that are fixed beforehand, whatever becomes
// of those before them, and latency counts from when a request was due. One for which no
// connection is free waits, and its waiting counts. The last answers are waited for until
// one time-out after the end, five seconds at most; what was not sent by then, or not
// answered, counts as failed.
//
// HdrHistogram's correction of closed loops is not offered. It adds the requests that
// would have been sent from an interval that somebody has to guess, and in a closed loop
// there is none: who knows the rate of their clients gives the rate.
//
// # What counts
//
// A request belongs to the measured time if it was due in it, or under way in a closed
// loop, then from the beginning of that time on, and every one of them ends as right or as failed. Latency is that of requests of
// which every call was answered rightly; read it together with the failures.
//
// A connection that breaks is opened again, at once for the first time and then with
// a growing pause. An HTTP connection that its server has closed while it was idle is
// no failure: the request is sent on the next one.
//
// # What it understands
//
// A response with status 200 and a Content-Length, which is nearly all of them, is read
// by hand, so that the load takes little CPU from what it measures; any other by
// net/http. WebSocket messages must come uncompressed. Each request
// has ids of its own, and answers must echo them, those to a batch in its order; with
// gzip ids stay the same, so that an answer that was seen is not unzipped again.
//
// A Dialer may be used from any goroutine, a Conn by one at a time. API keys are part
// of paths, and must not get into errors and reports.
package load
