//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// topologyClients is how many clients topologyLoad has.
const topologyClients = 9

// topologyLoad are clients at one edge, few: it is about who answers, not how fast.
func (s *site) topologyLoad(e *edge, key string) (callers []caller) {
	for i := range topologyClients - 1 {
		callers = append(callers, s.mustWS(e, i%2 == 0, key))
	}
	return append(callers, s.httpCaller(e, true, key))
}

// taken is how many questions a worker has taken so far.
func (w *worker) taken(t *testing.T) float64 {
	t.Helper()
	n, err := w.metric("ommer_bus_questions_total")
	if err != nil && !errors.Is(err, errNoMetric) {
		t.Fatal(err)
	}
	return n
}

// takes waits until the worker has taken n more questions.
func (w *worker) takes(t *testing.T, n float64) {
	t.Helper()
	goal := w.taken(t) + n
	eventually(t, soon, fmt.Sprintf("%s to take %v questions", w.name, n), func() error {
		if now := w.taken(t); now < goal {
			return fmt.Errorf("%v are missing", goal-now)
		}
		return nil
	})
}

// alone checks that of the questions of a load, while n are answered, none go to the
// other worker but for an edge's trial lookups.
func alone(t *testing.T, l *load, n int64, local, other *worker) {
	t.Helper()
	// While the machine stalls the local one is slow, which edges forget by half in 4 s.
	for began := time.Now(); ; {
		mine, theirs := local.taken(t), other.taken(t)
		l.more(n)
		mine, theirs = local.taken(t)-mine, other.taken(t)-theirs
		if mine >= float64(n)/2 && theirs <= float64(n)/20 {
			return
		}
		if time.Since(began) > 30*time.Second {
			t.Errorf("of %d questions %s took %v, and %s %v; want the local one to take all", n, local.name, mine, other.name, theirs)
			return
		}
	}
}

// TestCluster asks workers on other servers than the edges' own, while servers go and
// come back, one at a time.
func TestCluster(t *testing.T) {
	_, with, _ := sepolia(t)
	s := newSite(t)
	a, b, c := s.server("nats-1"), s.server("nats-2"), s.server("nats-3")
	servers := []*natsServer{a, b, c}
	s.cluster("here", "cluster.conf", servers)
	for _, n := range servers {
		n.seesCluster(servers)
	}
	operator := s.login("operator", a, b, c)
	key := s.createKey(operator)
	upstream := startNode(t, "").url
	s.startWorker("worker-1", upstream, s.login("worker-1", b, c, a))
	s.startWorker("worker-2", upstream, s.login("worker-2", c, a, b))
	e := s.startEdge("edge-1", s.login("edge-1", a, b, c), "--timeout-lookup", "2s")
	s.startEdge("edge-2", s.login("edge-2", b, c, a), "--timeout-lookup", "2s")
	s.waitReady()

	all := learn(t, s.httpCaller(e, false, key), with[:50])
	l := startLoad(t, all, append(s.topologyLoad(e, key), s.topologyLoad(s.edges[1], key)...))
	l.more(500)
	for _, n := range servers {
		n.kill()
		l.more(500)
		// The bucket has replicas: keys can be made, and reach the edges.
		began := time.Now()
		fresh := s.createKey(operator)
		made := time.Since(began)
		for _, e := range s.edges {
			eventually(t, soon, "the new key to be good on "+e.name, func() error {
				return ask(t.Context(), s.httpCaller(e, true, fresh), question{block: &with[0]})
			})
		}
		t.Logf("without %s a key was made after %v, and good after %v", n.name, made, time.Since(began))
		n.restart()
		n.seesCluster(servers)
		l.more(500)
	}
	l.end()
	none(t, l)
	t.Log(l)
}

// TestRegions has two regions joined by gateways: questions stay in their own, go to
// the other when it has no worker, and come back with the next.
func TestRegions(t *testing.T) {
	_, with, _ := sepolia(t)
	s := newSite(t)
	home := []*natsServer{s.server("west-1"), s.server("west-2"), s.server("west-3")} // as many as JetStream needs
	west, east := home[0], s.server("east-1")
	env := []string{
		"NATS_REGION_1=west", "NATS_GATEWAY_1=tls://" + west.region,
		"NATS_REGION_2=east", "NATS_GATEWAY_2=tls://" + east.region,
	}
	s.cluster("west", "gateway.conf", home, append(slices.Clip(env), "NATS_HOME=true")...)
	s.cluster("east", "gateway.conf", []*natsServer{east}, append(slices.Clip(env), "NATS_HOME=false")...)
	west.sees("/gatewayz", "east")
	east.sees("/gatewayz", "west")
	key := s.createKey(s.login("operator", west))
	upstream := startNode(t, "").url
	there := s.startWorker("worker-1", upstream, s.login("worker-1", west), "--zone", "west")
	here := s.startWorker("worker-2", upstream, s.login("worker-2", east), "--zone", "east")
	e := s.startEdge("edge-1", s.login("edge-1", east), "--zone", "east", "--timeout-lookup", "2s")
	s.waitReady()

	all := learn(t, s.httpCaller(e, false, key), with[:50])
	l := startLoad(t, all, s.topologyLoad(e, key))
	alone(t, l, 1000, here, there)
	if code := here.stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	there.takes(t, 1000)
	here = s.startWorker("worker-2", upstream, s.login("worker-2", east), "--zone", "east")
	waitReady(t, here.process, here.admin)
	here.takes(t, 100)
	alone(t, l, 1000, here, there)
	l.end()
	none(t, l)
}

// TestLeaf has an all-in-one server join a cluster: those on the server answer its edge
// first, then those of the cluster. The cluster asks it nothing, and each has its keys.
func TestLeaf(t *testing.T) {
	_, with, _ := sepolia(t)
	s := newSite(t)
	a, b, c := s.server("nats-1"), s.server("nats-2"), s.server("nats-3")
	servers := []*natsServer{a, b, c}
	s.cluster("here", "cluster.conf", servers)
	for _, n := range servers {
		n.seesCluster(servers)
	}
	operator := s.login("operator", a, b, c)
	key := s.createKey(operator)
	upstream := startNode(t, "").url
	theirs := s.startWorker("worker-1", upstream, s.login("worker-1", b))
	e := s.startEdge("edge-1", s.login("edge-1", c), "--timeout-lookup", "2s")
	s.waitReady()

	leaf := serve(t, t.TempDir(), "--network", network, "--name", "leaf-1", "--timeout-lookup", "2s",
		"--leaf", "tls://"+a.leaves+",tls://"+b.leaves, "--leaf-nkey", s.file("leaf-1.nk"), "--leaf-ca", s.file("servers-ca.pem"),
		"--leaf-cert", s.file("leaf-1.pem"), "--leaf-key", s.file("leaf-1.key"))
	nats, front := leaf.row(t, "NATS"), &edge{process: leaf.process, http: strings.TrimPrefix(strings.Split(leaf.row(t, "HTTP"), "/v3/")[0], "http://")}
	all := learn(t, s.httpCaller(front, false, leaf.key), with[:50]) // the cluster's worker answers
	local := s.startWorker("worker-2", upstream, []string{"--nats", nats}, "--zone", "leaf-1")
	waitReady(t, local.process, local.admin)

	t.Run("those on the server first", func(t *testing.T) {
		l := startLoad(t, all, []caller{s.httpCaller(front, false, leaf.key), s.mustWS(front, false, leaf.key)})
		local.takes(t, 100)
		alone(t, l, 1000, local, theirs)
		if code := local.stop(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		theirs.takes(t, 1000)
		local = s.startWorker("worker-2", upstream, []string{"--nats", nats}, "--zone", "leaf-1")
		waitReady(t, local.process, local.admin)
		local.takes(t, 100)
		alone(t, l, 1000, local, theirs)
		l.end()
		none(t, l)
	})

	t.Run("each has its keys", func(t *testing.T) {
		q := question{block: &with[0]}
		own := s.createKey([]string{"--nats", nats})
		eventually(t, soon, "the leaf's key to be good there", func() error {
			return ask(t.Context(), s.httpCaller(front, false, own), q)
		})
		if err := ask(t.Context(), s.httpCaller(e, false, own), q); statusOf(err) != http.StatusUnauthorized {
			t.Errorf("the leaf's key at the cluster's edge: got %v, want status 401", err)
		}
		if err := ask(t.Context(), s.httpCaller(front, false, key), q); statusOf(err) != http.StatusUnauthorized {
			t.Errorf("the cluster's key at the leaf: got %v, want status 401", err)
		}
		if err := ask(t.Context(), s.httpCaller(e, false, key), q); err != nil {
			t.Errorf("the cluster's key at its edge: %v", err)
		}
	})

	t.Run("the cluster asks it nothing", func(t *testing.T) {
		if code := theirs.stop(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		if err := ask(t.Context(), s.httpCaller(e, false, key), question{block: &with[60]}); err == nil {
			t.Error("answered, with no worker but the leaf's")
		}
		if err := ask(t.Context(), s.httpCaller(front, false, leaf.key), question{block: &with[60]}); err != nil {
			t.Errorf("the leaf itself: %v", err)
		}
	})

	t.Run("a server that it joined ends", func(t *testing.T) {
		theirs = s.startWorker("worker-1", upstream, s.login("worker-1", c))
		waitReady(t, theirs.process, theirs.admin)
		if code := local.stop(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		for _, n := range []*natsServer{a, b} {
			n.kill()
			eventually(t, soon, "the cluster to answer the leaf", func() error {
				return ask(t.Context(), s.httpCaller(front, false, leaf.key), question{block: &with[70]})
			})
			n.restart()
			n.seesCluster(servers)
		}
	})
}

// row is a value that serve prints.
func (s *served) row(t *testing.T, name string) string {
	t.Helper()
	stdout, _ := s.output()
	for line := range strings.Lines(stdout) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			return fields[1]
		}
	}
	t.Fatalf("no %s in\n%s", name, stdout)
	return ""
}
