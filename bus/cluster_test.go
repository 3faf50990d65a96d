package bus_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// natsCluster starts servers that all know each other. One after the other, and each
// dials those before it: two that dial each other at once may both give up the other's
// connection, and what is on its way is lost.
func natsCluster(t *testing.T, n int, change ...func(*server.Options)) (all []*server.Server) {
	t.Helper()
	var routes []*url.URL
	for i := range n {
		opts := &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
			// Longer than the test: who waits to be sent away fails it.
			LameDuckDuration: time.Minute, LameDuckGracePeriod: 30 * time.Second,
			Routes: slices.Clone(routes),
		}
		opts.Cluster.Name, opts.Cluster.Host, opts.Cluster.Port, opts.Cluster.PoolSize = "c", "127.0.0.1", server.RANDOM_PORT, -1
		for _, f := range change {
			f(opts)
		}
		s, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(patience) {
			t.Fatal("no connections")
		}
		all = append(all, s)
		routes = append(routes, &url.URL{Scheme: "nats", Host: s.ClusterAddr().String()})
		for _, s := range all {
			eventually(t, "the servers know each other", func() bool { return len(peersOf(t, s)) == i })
		}
	}
	return all
}

// peersOf names those that a server has a route to. Their number alone does not tell:
// two servers that dial each other at once have two for a moment.
func peersOf(t *testing.T, s *server.Server) map[string]bool {
	t.Helper()
	routes, err := s.Routez(nil)
	if err != nil {
		t.Fatal(err)
	}
	peers := map[string]bool{}
	for _, r := range routes.Routes {
		peers[r.RemoteName] = true
	}
	return peers
}

// delivered is how many messages a server has passed to its clients' subscriptions to a
// subject.
func delivered(t *testing.T, s *server.Server, subject string) (n int64) {
	t.Helper()
	conns, err := s.Connz(&server.ConnzOptions{Subscriptions: true, SubscriptionsDetail: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conns.Conns {
		for _, sub := range c.SubsDetail {
			if sub.Subject == subject {
				n += sub.Msgs
			}
		}
	}
	return n
}
