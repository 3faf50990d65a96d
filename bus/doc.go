// Package bus carries questions from edges to workers over NATS.
//
// A Link is one connection, kept up for ever. A Client asks: it is the
// schema.Resolver of an edge. A Server answers: it puts the schema.Resolver of a
// worker on the bus. Packages bus/keys and bus/embedded sit beside it, so that a
// binary links the NATS server only when it runs one.
//
// # Subjects
//
//	ommer.v1.<network>.<method>               questions, queue group "lookup"
//	ommer.w.<worker>.v1.<network>.<method>    the same, for one worker
//	_R.<name>.<link>.<method>                 answers; a few, used again and again
//	_R.<name>.<link>.w<n>m<method>            the same, of one worker
//	_R.<name>.<link>.x<id>                    the answer to one repeated question
//	ommer.load.<worker>                       what a worker says of itself, see Load
//
// A NATS server caches the routes of 512 subjects per connection, and a fresh
// reply subject per question would miss that cache every time. So the id of a
// question travels in the frame (package schema) and the reply subjects repeat.
//
// # Messages
//
// A message costs the asking side, the NATS server and the worker several times what
// the question in it costs. So questions that are asked within one turn of an event
// loop leave in one message, and their answers come back in one or two. A question
// does not wait for company, an answer for half a millisecond at most: see
// Client.publish and letter.
//
// # Asking
//
// Every question is answered exactly once: by a worker, by a refusal, or by its
// deadline. No goroutine waits for it. Lookups are idempotent, so a question may
// be sent again under the same id when its fate is unknown. The first answer counts,
// later ones are dropped by the generation in the id.
//
// Workers announce themselves (Load), and a client asks the two that a block belongs to
// (ranking): the first, which has it in its cache, or the second while the first is much
// busier or slower (peer.cost). A slow worker is found by what it takes, not by what it
// says. Who is not heard of belongs to the queue group, which is asked when nobody
// announces himself or all have refused. A question is asked again
//
//   - over another link, when its link is lost, or its worker is heard from its home over
//     another and no longer over this one (fleet.judge): 0.7 s after something between them
//     breaks. A link over which nothing comes is dialled anew (lookAtLinks);
//   - elsewhere at once, when a worker refuses it or fails, when the NATS server does not know the
//     worker, or when the worker says from its home, over the link that it was asked
//     over, that it may have lost it (Load.Epoch);
//   - elsewhere, when a worker says nothing any more: 0.7 s after it hangs; and of a worker
//     that is heard again, when it was asked of the queue group meanwhile;
//   - elsewhere as well, when its worker takes longer than 99 % of the last second's
//     answers, and 50 ms at least: a hedge. Each time that as long has passed again there
//     is another. Hedges are 5 % of the questions at most, so that an outage is not made
//     worse by them; all other repetitions need a sign that somebody else can answer, and
//     are three at most.
//
// A NATS server that has nobody to deliver to says so with status 503, which
// names the reply subject and not the message. See lane for how the question is
// found.
//
// # Serving
//
// A worker takes questions on several links, those for it alone on one of them (see
// home.go). An answer goes over the link that its question came over, or over another
// one while that has no connection. A link whose server is about to stop is drained and
// renewed, one that is mute is renewed at once. What may have been lost on the way is
// told by Load.Epoch.
//
// # Concurrency
//
// Every exported method may be called from any goroutine. Client.Resolve and the
// Server's receiving side never wait for a peer. They write through a buffer, and a
// socket that stalls can hold them up for one second (writeTimeout), after which the
// connection is given up; so can, for two (dialTimeout), a reconnect that begins in
// the same microseconds. While a link is known to be down it holds nobody up. Answers
// are delivered on the goroutine of a NATS subscription or of the clock: receivers
// hand them on and return.
//
// This package must not know what a block is, must not keep answers, and must not
// log questions, credentials or URLs with user information.
package bus
