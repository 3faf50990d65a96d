//go:build e2e

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBus measures every way on a cluster of NATS servers, with one worker and with
// several.
func TestBus(t *testing.T) {
	bin := os.Getenv("OMMER_BIN")
	if bin == "" {
		t.Fatal("OMMER_BIN does not say where the programs are; run make e2e")
	}
	file := filepath.Join(t.TempDir(), "report.json")
	var said strings.Builder
	err := runBus(t.Context(), []string{
		"--bin", bin, "--servers", "3", "--workers", "1,4", "--in-flight", "16", "--rounds", "2", "--duration", "200ms", "--json", file,
	}, &said, t.Output())
	t.Log(said.String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r busReport
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if got, want := len(r.Cells), 2*2*len(wayNames); got != want {
		t.Fatalf("%d cells, want %d", got, want)
	}
	for _, c := range r.Cells {
		if c.Requests == 0 || c.Servers != 3 || len(c.Answered) != c.Workers || c.CPU.NATS == 0 {
			t.Errorf("%+v", c)
		}
		// How the queue group is divided, over servers that have just met, is theirs to say.
		for i, n := range c.Answered {
			if n == 0 && c.Way == wayChoice {
				t.Errorf("%s: worker %d of %d has answered nothing", c.Way, i+1, c.Workers)
			}
		}
	}
}
