//go:build e2e

package e2e

import (
	"fmt"
	"testing"
)

// Metrics of a process that must go back to where they were.
const (
	openConnections = "ommer_nio_connections"
	openFiles       = "process_open_fds"
	goroutines      = "go_goroutines"
	residentBytes   = "process_resident_memory_bytes"
)

// TestNothingStays opens and closes thousands of connections, and looks at what is
// left of them in the edge.
func TestNothingStays(t *testing.T) {
	const (
		rounds        = 3
		plain, secure = 2000, 1000
		// few is what may differ: a scrape's own connection, a handshake's end.
		few = 10
		// A Go process gives memory back when it sees fit.
		growth, slack = 1.25, 16 << 20
	)
	_, with, _ := sepolia(t)
	f, key := startFleet(t, startNode(t, "").url, size{edges: 1, workers: 1})
	e := f.edges[0]
	c := &crowd{f: f, e: e, key: key}
	q := question{block: &with[0]}

	// What is made at the first connection and kept is not a leak.
	for _, overTLS := range []bool{false, true} {
		members, err := c.gather(t.Context(), 2*openAtOnce, overTLS, q)
		part(members)
		if err != nil {
			t.Fatal(err)
		}
	}
	back(t, e, openConnections, 0)
	base := map[string]float64{}
	for _, m := range []string{openFiles, goroutines} {
		base[m] = e.mustMetric(t, m)
	}
	t.Logf("before: %v files, %v goroutines, %.1f MiB", base[openFiles], base[goroutines], e.mustMetric(t, residentBytes)/(1<<20))

	var first float64
	for round := range rounds {
		members, err := c.gather(t.Context(), plain, false, q)
		if err == nil {
			var more []*member
			more, err = c.gather(t.Context(), secure, true, q)
			members = append(members, more...)
		}
		open, files, full := e.mustMetric(t, openConnections), e.mustMetric(t, openFiles), e.mustMetric(t, residentBytes)
		part(members)
		if err != nil {
			t.Fatal(err)
		}
		if open != plain+secure || files < open {
			t.Errorf("round %d: %v connections and %v files are open, want %d connections", round, open, files, plain+secure)
		}
		back(t, e, openConnections, 0)
		back(t, e, openFiles, base[openFiles]+few)
		back(t, e, goroutines, base[goroutines]+few)
		resident := e.mustMetric(t, residentBytes)
		t.Logf("round %d: %v connections, %.1f MiB; after: %v files, %v goroutines, %.1f MiB",
			round, open, full/(1<<20), e.mustMetric(t, openFiles), e.mustMetric(t, goroutines), resident/(1<<20))
		if round == 0 {
			first = resident
		} else if resident > first*growth+slack {
			t.Errorf("round %d: %.1f MiB resident, %.1f MiB after the first round", round, resident/(1<<20), first/(1<<20))
		}
	}
}

// back waits until a metric is at most high again.
func back(t *testing.T, e *edge, metric string, high float64) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("%s to be at most %v", metric, high), func() error {
		if v := e.mustMetric(t, metric); v > high {
			return fmt.Errorf("it is %v", v)
		}
		return nil
	})
}
