//go:build e2e

package e2e

import "testing"

// states are a fleet with an edge for each state that clients can meet it in. The
// edges share a NATS server and a key; each has a network and a worker of its own.
type states struct {
	*fleet
	key    string
	main   *edge // all is well
	pruned *edge // its node has dropped the block
	lost   *edge // its node is gone
	slow   *edge // its node does not answer; one lookup may wait per connection
}

// startStates starts them, with one block that can be asked for.
func startStates(tb testing.TB, dropped block) *states {
	tb.Helper()
	n, lost := startNode(tb, ""), startNode(tb, "")
	slow := startGate(tb, n)
	s := &states{fleet: newFleet(tb)}
	s.startNATS()
	s.key = s.createKey("clients")
	for _, e := range []struct {
		edge     **edge
		network  string
		upstream string
		args     []string
	}{
		{&s.main, "main", n.url, nil},
		{&s.pruned, "pruned", startPruned(tb, n, dropped), nil},
		{&s.lost, "lost", lost.url, nil},
		{&s.slow, "slow", slow.url, []string{"--limit-in-flight", "1"}},
	} {
		s.startWorker(e.upstream, "--network", e.network)
		*e.edge = s.startEdge(append(e.args, "--network", e.network)...)
	}
	s.waitReady()
	lost.stop()
	slow.hold()
	tb.Cleanup(slow.release) // before the processes are told to end
	return s
}
