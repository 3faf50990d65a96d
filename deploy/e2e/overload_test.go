//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestOverload takes the memory of an edge up with bodies that do not end. The edge
// stands it: it turns new connections away, says so to its operator, who is always
// answered, and serves everybody when they have gone.
func TestOverload(t *testing.T) {
	_, with, _ := sepolia(t)
	const budget, mebi = 64 << 20, 1 << 20
	f, key := startFleet(t, startNode(t, "").url, size{edges: 1, workers: 1, edgeArgs: []string{
		"--overload-memory", fmt.Sprint(budget), "--timeout-body", "1m", "--limit-input-total", fmt.Sprint(budget),
	}})
	e := f.edges[0]
	asked := question{block: &with[0]}
	overHTTP := f.httpCaller(e, true, key)
	rightAgain(t, "an answer", overHTTP, asked)

	part := bytes.Repeat([]byte(" "), mebi-1)
	var bodies []net.Conn
	closeAll := func() {
		for _, c := range bodies {
			_ = c.Close() // many are closed by the edge already
		}
		bodies = nil
	}
	defer closeAll()
	eventually(t, soon, "the edge to refuse connections", func() error {
		c, err := net.DialTimeout("tcp", e.http, time.Second)
		if err != nil {
			return err
		}
		bodies = append(bodies, c)
		_ = c.SetDeadline(time.Now().Add(time.Second)) // whoever is not read gives up
		fmt.Fprintf(c, "POST /v3/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, mebi, part)
		stage, err := e.metric("ommer_edge_overload_stage")
		if err == nil && stage < 2 {
			err = fmt.Errorf("stage %v with %d bodies", stage, len(bodies))
		}
		return err
	})
	says(t, e.process, e.admin, "503", "overload", "memory")
	for _, path := range []string{"/livez", "/metrics"} {
		if status, _, err := e.get(path); status != http.StatusOK || err != nil {
			t.Errorf("%s of an overloaded edge: %d %v", path, status, err)
		}
	}
	eventually(t, soon, "a connection to be counted as refused", func() error {
		c, err := net.DialTimeout("tcp", e.http, time.Second)
		if err == nil {
			_ = c.Close()
		}
		if n, err := e.metric("ommer_nio_refused_total"); err != nil || n == 0 {
			return errors.Join(errors.New("none is"), err)
		}
		return nil
	})
	t.Logf("stood with %d bodies of 1 MiB in %d MiB", len(bodies), budget/mebi)

	closeAll()
	f.waitReady()
	rightAgain(t, "an answer afterwards", f.httpCaller(e, true, key), asked)
}
