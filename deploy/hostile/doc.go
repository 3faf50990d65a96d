// Hostile lets attackers loose on a running edge, beside honest clients, and looks at
// what becomes of both.
//
// # What runs
//
// nats-server, ommer-worker and ommer-edge are processes, on free ports of loopback, in
// a temporary folder that is removed; the node behind them is deploy/devnode with the
// chain of deploy/testchain. The edge listens with and without TLS. Its limits are the
// defaults. Its time-outs are made two seconds, and twice that between
// requests and pings, so that attacks end in seconds. It sheds nothing for delay: on a
// busy machine that would say nothing of the edge.
//
// Everybody has the same key, so that the honest have no share of their own by that: what
// keeps attackers from taking all is that addresses and connections have theirs.
//
// Attackers are this program again, in processes of their own with the lowest priority
// (nice 19): they share the machine's CPU with the edge, and what is to be seen is what
// they do to the edge, not what they take from it. Each attack's rate is capped for the
// same reason, and its CPU is printed beside the edge's. They come from 127.0.0.2 to
// 127.0.0.17, so that the limits for one address do not end the experiment; some attacks
// are made once more from a single address.
//
// # The honest
//
// They come from 127.0.0.1, and keep to a schedule whatever happens to them (an open
// loop): 500 questions a second on 20 connections that stay open, HTTP and WebSocket,
// with and without TLS, and 20 newcomers a second who connect, ask once and leave.
// Latency counts from the time when the question was due, so that a stall counts for
// everyone who had to wait in it. Each answer is compared byte by byte with one that was
// held against the chain before. A question belongs to the time in which it was due:
// before, during, or after the attack.
//
// # What is asserted
//
// Nothing that depends on the speed of the machine:
//
//   - no honest question fails or has a wrong answer, newcomers' among them;
//   - every attacker meets an answer and an end that the row of its attack lists, which
//     are those of deploy/LIMITS.md, README.md and the RFCs; each row has its reason;
//   - the edge's resident memory stays below the bound of the row, beyond what it has at
//     rest and the garbage that it always lets gather;
//   - afterwards connections, files and goroutines are back where they were, and when
//     everybody has left, memory and all else.
//
// Attackers wait for their end, however late it comes. Those that read nothing cannot
// see it: they hold on until the edge has no connection of theirs any more.
//
// Latency is printed and not asserted. p99, and the worst of the newcomers, during an
// attack and before it are set beside each other, and a ratio over two is marked. On a
// machine that others use as well, only many marks in a row for one attack mean
// something.
//
// # What is not attacked
//
// Renegotiation in TLS 1.2: crypto/tls offers it to no client and refuses it as a server,
// and a client that asks for it would need a record layer of its own, as there is one
// here for the key updates of TLS 1.3, which crypto/tls does not send of its own accord
// either. Memory up to the edge's budget, since an edge that sheds load turns the honest
// away as well: that it stands it is a test of deploy/e2e. What needs more than one machine: source addresses by the thousand, and
// links that are full.
//
// A row is an attack: add one to the table where it belongs (attacks_*.go), with the end
// that is documented for it. Linux only, for /proc and its loopback addresses.
package main
