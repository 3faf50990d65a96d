//go:build e2e && linux

package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

const (
	// rollingTakes is how long each lookup takes, so that every process has questions
	// in flight whenever it goes.
	rollingTakes = 50 * time.Millisecond
	// hangTime is how long a process hangs, and the longest that a call may take
	// meanwhile. Questions time out after twice that.
	hangTime = 5 * time.Second
)

// rolling is what operators are told to run, three NATS servers with their files, with
// two workers that keep nothing, two edges that clients can choose from, and traffic.
// Every process is there once more than is needed.
type rolling struct {
	*site
	*traffic
	t       *testing.T
	servers []*natsServer
}

func startRolling(t *testing.T) *rolling {
	t.Helper()
	_, with, _ := sepolia(t)
	g := startGate(t, startNode(t, ""))
	s := newSite(t)
	servers := []*natsServer{s.server("nats-1"), s.server("nats-2"), s.server("nats-3")}
	s.cluster("rolling", "cluster.conf", servers)
	key := s.createKey(s.login("operator", servers...))
	for _, name := range []string{"worker-1", "worker-2"} {
		s.startWorker(name, g.url, s.login(name, servers...), "--cache-bytes=1")
	}
	for _, name := range []string{"edge-1", "edge-2"} {
		// Each has addresses of its own, but leaves as if it shared them: an idle
		// connection has time for one more request.
		s.startEdge(name, s.login(name, servers...), "--reuseport", "--limit-conns-per-addr", "10000")
	}
	s.waitReady()
	s.whole(servers)
	all := learn(t, s.httpCaller(s.edges[0], false, key), with)
	g.slow(rollingTakes)
	r := &rolling{site: s, traffic: startTraffic(t, all, s.party(s.edges, 6, key)), t: t, servers: servers}
	r.more(500)
	r.unharmed("before")
	return r
}

// leave ends a process as an operator does.
func (r *rolling) leave(p *process) {
	r.t.Helper()
	if code := p.stop(); code != 0 {
		r.t.Errorf("%s: exit code %d, want 0", p.name, code)
	}
}

// TestRollingRestart replaces every process, one after the other.
func TestRollingRestart(t *testing.T) {
	r := startRolling(t)
	for _, w := range r.workers {
		r.leave(w.process)
		r.more(200)
		w.revive()
		r.more(200)
		r.unharmed(w.name + " restarted")
	}
	for _, e := range r.edges {
		r.leave(e.process)
		r.more(200)
		e.revive()
		r.more(200)
		r.unharmed(e.name + " restarted")
	}
	for i, e := range r.edges {
		next := e.successor()
		r.leave(e.process)
		r.edges[i] = next
		r.more(200)
		r.unharmed(e.name + " replaced by one at its addresses")
	}
	for _, lameDuck := range []bool{false, true} {
		for _, n := range r.servers {
			what := n.name + " restarted"
			if lameDuck {
				what += " after its time as a lame duck"
				n.signal(syscall.SIGUSR2)
				n.wait()
			} else {
				n.stop()
			}
			r.more(200)
			n.restart()
			r.whole(r.servers)
			r.more(200)
			r.unharmed(what)
		}
	}
	r.end()
}

// TestKill kills a worker, each NATS server in turn, and an edge.
func TestKill(t *testing.T) {
	r := startRolling(t)
	w := r.workers[0]
	w.kill()
	r.more(1000)
	w.revive()
	r.more(200)
	r.unharmed(w.name + " killed")

	for _, n := range r.servers {
		held := n.mustHold(t)
		n.kill()
		r.more(1000)
		n.restart()
		r.whole(r.servers)
		r.more(200)
		r.unharmed(fmt.Sprintf("%s killed, which held %v", n.name, held))
	}

	e := r.edges[0]
	r.doom(e, true)
	e.kill()
	r.more(1000)
	e.revive()
	r.doom(e, false)
	r.more(200)
	got := r.report(e.name + " killed")
	if got.wrong > 0 || len(got.failed) > 0 || got.held > len(r.clients) {
		t.Errorf("want no failure but on the connections that it held, %d at most", len(r.clients))
	}
	r.end()
}

// TestHung stops a worker and then each NATS server for a while, and lets it go on.
func TestHung(t *testing.T) {
	r := startRolling(t)
	hang := func(p *process, what string) {
		t.Helper()
		func() {
			p.signal(syscall.SIGSTOP)
			defer p.signal(syscall.SIGCONT) // also for its end, when this one fails
			r.more(int(hangTime/callEvery) * len(r.clients))
		}()
		r.whole(r.servers)
		r.more(200)
		if got := r.unharmed(what); got.longest > hangTime {
			t.Errorf("%s: want no call to take longer than %v", what, hangTime)
		}
	}
	hang(r.workers[0].process, r.workers[0].name+" hung")
	for _, n := range r.servers {
		held := n.mustHold(t)
		hang(n.process, fmt.Sprintf("%s hung, which held %v", n.name, held))
	}
	r.end()
}
