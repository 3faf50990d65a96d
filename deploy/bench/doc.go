// Bench measures the programs as processes on this machine: requests per second,
// latency and CPU per request against geth, and memory per idle connection.
//
// # What runs
//
// geth imports a generated chain with uncles and serves it over HTTP. nats-server,
// ommer-worker and ommer-edge are three processes; the worker's upstream is the same
// geth, so that both answer the same questions with the same uncles. Everything
// listens on loopback, on free ports, in a temporary folder that is removed.
//
// # Requests
//
// A number of connections each have one request outstanding (a closed loop): the
// next one is sent when the answer is there. Every answer is compared with the hash
// that the generated chain has for the question, and one wrong answer fails the
// run. Before it is measured each path warms up, so Ommer answers from the worker's
// cache, and geth finds every block in its own. What CPU geth spends while Ommer is
// asked is printed, and shows it.
//
// Rounds go over all paths, geth among them, in an order that turns with the round.
// A cell of the table is the median of the rounds; ratios to geth are taken within a
// round first. Latency in a closed loop is mostly the time that requests wait for
// each other: it says how fair a server is at that load, not how fast one request is.
//
// CPU is what /proc/<pid>/stat says of user and system time, in ticks of 10 ms, of
// each process over the measured time. It moves far less than requests per second
// when something else uses the machine.
//
// # Yardsticks
//
// Two servers that do nothing but answer say what the machine gives at all: an echo on
// bare nbio, which writes one and the same answer, but for its id, when something arrives,
// for the paths without TLS; and net/http over TLS with a handler that writes that answer,
// for those with TLS. They answer one question, so that they are asked only that.
//
// # Where the time goes
//
// An edge's CPU, 64 connections over HTTP, by /debug/pprof/profile while the program
// runs, 57,000 requests a second:
//
//	33 %  write(2) to clients and, in one call for many questions, to NATS
//	10 %  read(2); every other one finds nothing: with EPOLLRDHUP it could be left out,
//	      but nbio closes a half-closed connection on that
//	 6 %  epoll_wait(2)
//	13 %  HTTP, the key, JSON-RPC and the parameters
//	 5 %  asking: the table of questions, deadlines, the message
//	 7 %  taking the answers out of their messages
//	 3 %  rendering the response
//	 8 %  Go's scheduler; the collector takes less than 1 %
//
// A bare echo has the first three as well. What made a difference, in CPU of edge, server
// and worker together: many questions in one message (24 to 20 us a request), one link
// in place of two on two cores (19.8 to 18.4), system calls that the scheduler does not
// hear of (5 to 8 % of the edge's). With few connections waking goroutines is what
// costs; so a question that is alone is published by who asks it, and an answer that is
// alone is written by who receives it. What made none: smaller messages (8 and 16
// questions in place of 32), which keep more processes busy at a time and cost more.
//
// # Memory
//
// An edge is started for each kind of connection and asked for a while; when that
// traffic is gone, VmRSS of /proc/<pid>/status is read. Then a process of its own
// (a process may open only so many files) opens the connections, makes one exchange
// on each and leaves them open. VmRSS is read again when it has come to rest. The
// difference, divided by the connections, is what is printed: the edge is not asked
// to collect garbage or to return memory, so garbage is in it. The kernel's memory for
// sockets is not, and VmRSS itself is off by up to 256 KiB on two cores. The edge's
// time-outs are raised, so that no connection is pinged or closed meanwhile.
//
// # Many connections
//
// The command connections (make bench-connections) holds as many connections as
// several processes can. Edges share one port by --reuseport, as many as the file
// limit asks for; the kernel spreads the connections over them by a hash, and how
// evenly is printed. Processes of this program open the connections, each process
// from source addresses of its own in 127.0.0.0/8, since a source address has 28,000
// ports to one destination. They check the answer to a question on every connection
// when it is opened, and to another one after all of them were idle. Any failure
// fails the run.
//
// The kinds ws, wss, http and https are left alone meanwhile: the edges' time-outs are
// raised. In ws-ping and wss-ping the edges ping after --ping, 30 s, as they do by
// default, and the CPU that they use while nothing else happens is divided by the
// pings that the clients have answered.
//
// The edges' memory is the growth of their VmRSS, all together, measured as above.
// The kernel's is that of Slab, KernelStack, PageTables and Percpu in /proc/meminfo,
// of the whole machine: both ends of every connection are in it, and whatever else
// the machine does. TCP's buffers are in slabs while there are any; what
// /proc/net/sockstat accounts for them goes to the JSON report. If /proc/slabinfo can
// be read (by root), the objects of each cache are counted, and those of which as many
// came as there are connections are listed: two of TCP, sock_inode_cache, dentry and
// filp are the sockets of both ends, eventpoll_epi their places in an epoll (the
// clients' have two of them when they answer pings). The kernel merges caches of
// objects that are alike, so that a name may stand for others as well. Half of the
// kernel's memory is taken for the edges' end: the ends differ in little but the
// clients' ports. A monitor that lists the open files of processes leaves an inode of
// /proc for each of them in the kernel; those are counted by proc_inode_cache and left
// out. The clients' resident memory is printed, but nothing was done to keep it small
// beyond having no goroutine for each connection.
//
// # The bus alone
//
// The command bus (make bench-bus) measures what asking over the bus costs, with nothing
// of an edge in it: one nats-server or a cluster of three (--servers 3), processes of
// this program that answer at once, and one that asks. It keeps a number of questions
// unanswered at a time and asks another one for each answer. There are 1,024 questions,
// each with an answer of its own of 1,450 B, and one answer that is not the one to its
// question fails the run. The ways to ask:
//
//	nc.Request   nats.go as it comes, on both sides: a goroutine waits for each answer
//	queue-group  a bus.Client; its workers announce nothing, the server picks one
//	by-worker    a bus.Client that chooses among workers that announce themselves
//
// All of them carry the same frame of 54 B, by subjects about as long. nc.Request's worker
// reads that frame and sends the bare answer; it has neither deadlines, nor limits, nor
// metrics to keep. The asker of a bus.Client has one goroutine for each processor, to
// which answers return by a channel. GOGC is 400 in every process: small heaps at Go's own
// setting are collected all the time, which would be measured as well.
//
// Rounds, medians and CPU are as above, the CPU being that of all processes of a kind; the
// asker's own is part of the sum. Each figure is divided by nc.Request's in the same
// round. Messages are those of the asker's connection, announcements among them. In a
// cluster the asker's server has no workers, so that every message takes a route. Whether
// the client chooses is seen to: it is not asked before all workers were heard.
//
// CPU per request of all processes, by that of nc.Request: medians of five rounds of 1.5 s
// (lowest to highest), one server, two cores that other programs kept busy at the same
// time. Of such a run only ratios are worth anything:
//
//	in flight        1 worker: queue-group  by-worker         4 workers: queue-group  by-worker
//	        1        1.04 (0.89-1.15)       0.96 (0.82-1.09)  1.06 (0.77-1.15)        0.97 (0.75-1.22)
//	       16        0.47 (0.35-0.50)       0.42 (0.42-0.50)  0.64 (0.63-0.68)        0.81 (0.78-0.82)
//	      256        0.33 (0.29-0.34)       0.34 (0.30-0.34)  0.37 (0.35-0.39)        0.40 (0.38-0.42)
//	     4096        0.27 (0.24-0.30)       0.28 (0.25-0.30)  0.28 (0.28-0.29)        0.29 (0.28-0.30)
//
// So what saves CPU is company. A question that is alone costs what nc.Request costs, of
// 256 about 22 share a message (14 when they are sorted by four workers), and with few
// questions for many workers choosing costs more than it saves here, where workers have
// no cache that would make up for it. A closed loop flatters: answers that come together
// are followed by questions that leave together. So do an event loop's turns in an edge,
// but how many questions come in one is up to the clients.
//
// # Limits
//
// The load comes from the same machine and takes CPU from the servers: requests per
// second are what both together reach, and the load's own share is printed. Requests
// are small and alike, and carry the three header fields that they need. With few
// connections every request wakes three processes, which costs several times the CPU
// of one under load; --conns 1 shows it. geth serves without TLS. It is started with --gogc 100, Go's own setting,
// which costs geth less CPU than its default of 50; nats-server with GOGC=400, as the
// README tells operators to. Ommer sets its own, see package bus/process.
package main
