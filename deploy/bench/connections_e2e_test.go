//go:build e2e

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConnections holds few connections over two edges, of each transport, with TLS
// and without, with pings and without.
func TestConnections(t *testing.T) {
	bin := os.Getenv("OMMER_BIN")
	if bin == "" {
		t.Fatal("OMMER_BIN does not say where the programs are; run make e2e")
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	const conns, edges = 200, 2
	names := []string{"ws", "wss-ping", "https"}
	file := filepath.Join(t.TempDir(), "report.json")
	var said strings.Builder
	err := runConnections(t.Context(), []string{
		"--bin", bin, "--connections", "200", "--edges", "2", "--only", strings.Join(names, ","), "--ping", "1s", "--rest", "200ms", "--json", file,
	}, &said, t.Output())
	t.Log(said.String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r connectionsReport
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Kinds) != len(names) {
		t.Fatalf("%d kinds, want %d", len(r.Kinds), len(names))
	}
	for i, m := range r.Kinds {
		if m.Kind != names[i] || m.Answered != 2*conns || m.Failed != 0 {
			t.Errorf("%s: %d answers, %d failed, want %d of %s", m.Kind, m.Answered, m.Failed, 2*conns, names[i])
		}
		if len(m.Spread) != edges || m.Spread[0]+m.Spread[1] != conns || m.Spread[0] == 0 || m.Spread[1] == 0 {
			t.Errorf("%s: connections by edge: %v", m.Kind, m.Spread)
		}
		// Of those that were silent for a second each is pinged once at least.
		if strings.HasSuffix(m.Kind, "-ping") != (m.Pings >= conns) {
			t.Errorf("%s: %d pings", m.Kind, m.Pings)
		}
		if m.Before == 0 || m.After == 0 || m.Clients == 0 {
			t.Errorf("%s: memory %d, %d, %d", m.Kind, m.Before, m.After, m.Clients)
		}
	}
}
