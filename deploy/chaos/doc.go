// Chaos breaks a running deployment in every way it knows, one after the other, while
// clients ask, and looks at what they see.
//
// # What runs
//
// A network of machines within this one: three NATS servers in a cluster, which keep the
// API keys three times, two upstream nodes (deploy/devnode with a chain generated for the
// run), three ommer-worker and two ommer-edge, of those in the folder --bin. Each has an
// address, a network namespace and a link to a bridge of its own. The clients are in this
// program, at the bridge. Settings are the defaults but for three: a call is given up after
// 5 s, which some faults outlast and some do not; connections of an edge that leaves
// drain for 3 s; and workers may keep a tenth of the chain, so that upstreams are asked all
// the time. These take 20 ms for an answer, as nodes elsewhere do, so that at any time
// some questions are on their way. Edges and workers are given all three servers.
//
// All of it is in process, network and mount namespaces that the program makes for itself
// first (sandbox.go), with files in memory. So the machine's own network is not touched, runs do
// not meet, and none leaves anything behind, however it ends: the kernel ends the
// processes in there with the first of them, and that one with whoever started it. This
// needs Linux and root, and ip and nft, which Debian has in iproute2 and nftables.
//
// # What happens
//
// Faults are drawn from --seed (deck.go): each kind once, in an order that is drawn as
// well, then each once more. What is drawn does not depend on what happens. A fault lasts 3
// to 7 s and is healed: a process that was killed is started again, a rule of the firewall
// taken away. Then the deployment has time until everything is well again: every process says
// so of itself, nothing failed for a second, no question is late by more than that,
// and both edges answer. Two quiet seconds follow, in which nothing may fail.
//
// Links are cut and packets lost by rules at one end, for what comes in, what goes out or
// both; TCP sees silence, as with a cable that was pulled. With "->" in its name a
// fault stops one direction. Edges and workers lose a link that they are using: which one that is
// the servers are asked. Delay on links is not among the faults, as kernels often come without
// netem; upstreams delay what they answer by themselves.
//
// With --overlap every other fault has a second one begin while it lasts, at a
// machine of another role. What either of them excuses is excused.
//
// # The clients
//
// 48, half on HTTP connections that are kept alive and half on WebSockets, ask 240
// questions a second at fixed times (an open loop). Latency counts from when a question was
// due. Every client has an edge that it prefers, as a balancer would send it: new
// connections go to an edge that says it is ready. Who loses a connection goes on at the
// other edge, and goes home when that is ready again. A question is never asked twice: what
// a fault costs is to be seen.
//
// Each answer is compared byte by byte with one that was computed from the chain, by
// go-ethereum and no code of the service. About half of the right ones are null.
//
// # What is asserted
//
//   - no answer is wrong, ever;
//   - what fails is excused by its fault, in the table of excuse.go with its reason;
//     --list prints it. Between faults nothing is excused;
//   - after each fault everything is well again, within a minute;
//   - no process ends by itself.
//
// Else the exit code is 1. A question belongs to a fault if it was due before everything
// was well again, and not answered before the fault began. One that was with an edge as it
// died is counted apart ("held by"): its client cannot know what became of it.
//
// Latency and gaps are printed, and compared with nothing: they say how the machine is as
// well. The worst gap is the longest time without any right answer, to anybody.
package main
