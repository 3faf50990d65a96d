//go:build e2e

package e2e

import (
	"encoding/json"
	"testing"

	"github.com/ommer/ommer/deploy/testchain"
)

// TestUpstreamsCheck has the command look at geth, by each of its transports.
func TestUpstreamsCheck(t *testing.T) {
	genesis, err := testchain.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := testchain.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	g := startGeth(t, genesis, blocks[1:])
	g.choose(t, forkchoice{head: blocks[63], safe: blocks[62], finalized: blocks[61]})
	urls := []string{"http://" + g.http, "ws://" + g.ws}
	stdout, stderr, code := run(t, "ommer", append([]string{"upstreams", "check", "--json"}, urls...)...)
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	var said struct {
		Nodes []struct {
			Node, Lookups   string
			Chain           struct{ ID, Genesis any }
			Head            struct{ Number, Behind uint64 }
			Safe, Finalized struct{ Number uint64 }
			Syncing         bool
			History         struct{ All bool }
			State           struct{ Held bool }
			Uncles          struct {
				ByNumber string `json:"by_number"`
				ByHash   string `json:"by_hash"`
				Block    uint64
				Last     uint64
			}
			Batch                  int
			Compression, Subscribe *bool
			Untrue                 []string
		}
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil || len(said.Nodes) != len(urls) {
		t.Fatalf("%v\n%s", err, stdout)
	}
	for i, n := range said.Nodes {
		u := n.Uncles
		switch {
		case n.Node != urls[i], n.Lookups != "all", n.Syncing, len(n.Untrue) > 0,
			n.Chain.ID != float64(testchain.ChainID), n.Chain.Genesis != blocks[0].Hash().Hex(),
			n.Head.Number != uint64(len(blocks)-1), n.Head.Behind != 0, n.Safe.Number != 62, n.Finalized.Number != 61, !n.History.All, !n.State.Held, n.Batch != 100,
			u.ByNumber != "verified", u.ByHash != "verified", len(blocks[u.Block].Uncles()) == 0, u.Last != testchain.Merge-1:
			t.Errorf("%s:\n%s", urls[i], stdout)
		}
	}
	if n := said.Nodes[0]; n.Compression == nil || !*n.Compression || n.Subscribe != nil {
		t.Errorf("HTTP: compression %v, subscribe %v, want true and nothing", n.Compression, n.Subscribe)
	}
	if n := said.Nodes[1]; n.Subscribe == nil || !*n.Subscribe || n.Compression != nil {
		t.Errorf("WebSocket: subscribe %v, compression %v, want true and nothing", n.Subscribe, n.Compression)
	}
}
