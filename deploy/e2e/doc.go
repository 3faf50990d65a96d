// Package e2e looks at the programs from outside: its tests run the binaries as
// processes on loopback, ask them as clients do, and end them as machines do.
//
// The tests have the build tag e2e and take the programs (ommer, ommer-edge,
// ommer-worker, nats-server, geth) from the folder that OMMER_BIN names; `make e2e`
// builds them. The upstream node is deploy/devnode inside of the test process, over
// the real Sepolia blocks that the go-ethereum module carries. What is true is read
// from that file with workers/archive and go-ethereum's types, by no code that
// renders or serves an answer. Only the conversations of deploy/transcript have a
// chain and a node of their own: workers/upstream/upstreamtest, which can fail.
//
// For the oracle the upstream node is geth, with two generated chains of which the
// test, as the consensus client, makes the one or the other canonical. What geth
// answers to a message is what we have to answer; in what else we may, and why, is
// the list in allowances.go.
//
// TestLies puts a liar between geth and the workers: each of lies is told alone and beside
// an honest node, and each answer compared with the chain. Its table says what callers
// got. Where that is, as of now, not what it should be, the lie itself says why.
// TestReorgDepths, TestStuckAndHasty and TestPrunedGeth have geth itself change its mind,
// stay behind, and forget.
//
// The folder clients has the tests of clients that are not Go, and the examples of
// README.md in clients/ask. TestClients runs them with Node.js; `make clients`
// installs the clients, of exact versions.
//
// The program cmd/echo serves outside suites, such as Autobahn's, with the edge's own
// code and an answer that they can check. Our tests of the same are in package edge.
//
// What is about clusters, regions, leaf nodes and permissions runs the files of
// deploy/nats as they are, with certificates of its script, which takes openssl.
//
// TestRollingRestart, TestKill and TestHung do to each process of such a cluster, under
// traffic, what machines and operators do, and no question may fail.
//
// Nothing here imports the edge, the bus or the workers' lookups, cmd apart, and
// nothing waits for a length of time: each wait is for a condition, and bounded. Every
// process belongs to one test, is ended by its id when that test ends, and the end
// of its log is printed if the test failed.
package e2e
