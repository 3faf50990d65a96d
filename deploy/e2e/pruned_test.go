//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/deploy/testchain"
)

// prune has geth forget the bodies of the blocks below one, which must be final.
//
// `geth prune-history` refuses chains of less than 90,000 blocks. This is what it does
// once it has not (pruneHistory of its cmd/geth/chaincmd.go): geth takes the blocks into
// its freezer, where they come as soon as they are final and geth is started again, and
// the freezer drops its tail.
func (g *geth) prune(tb testing.TB, below uint64) {
	tb.Helper()
	g.restart(tb, func() {})
	index := filepath.Join(g.chain, "ancient", "chain", "hashes.ridx")
	eventually(tb, soon, "geth to freeze what is final", func() error {
		const entry = 6 // bytes: indexEntrySize of core/rawdb/freezer_table.go
		st, err := os.Stat(index)
		if err == nil && st.Size() < int64(below+1)*entry {
			err = fmt.Errorf("%s has %d bytes", index, st.Size())
		}
		return err
	})
	g.restart(tb, func() {
		db, err := rawdb.Open(rawdb.NewMemoryDatabase(), rawdb.OpenOptions{Ancient: filepath.Join(g.chain, "ancient")})
		if err == nil {
			_, err = db.TruncateTail(rawdb.ChainFreezerBlockDataGroup, below)
		}
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			tb.Fatal(err)
		}
	})
}

// TestPrunedGeth has a geth that has pruned its history for the only node, beside one
// that has not, and beside an archive of what the latter had.
func TestPrunedGeth(t *testing.T) {
	shape := testchain.Shape{Length: 160, London: 40, Merge: 140}
	const kept, final = 90, 130 // the lowest block that is kept, and the last one that is final
	genesis, err := shape.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := shape.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	start := func() *geth {
		g := startGeth(t, genesis, chain[1:])
		g.choose(t, forkchoice{head: chain[len(chain)-1], safe: chain[final], finalized: chain[final]})
		return g
	}
	whole, cut := start(), start()
	cut.prune(t, kept)
	file := buildArchive(t, "http://"+whole.http, "--last", fmt.Sprint(final))

	// These are every index of every block, by number and by hash. Archives have no
	// hashes of blocks without uncles. Of a third index there is no need to ask anybody:
	// no block can have as many uncles.
	var below, unlisted, above, beyond []probe
	for _, b := range chain {
		number, hash := &above, &above
		uncles := unclesOfBlock(b)
		if b.NumberU64() < kept {
			number, hash = &below, &below
			if len(b.Uncles()) == 0 {
				hash = &unlisted
			}
		}
		for index, want := range uncles {
			*number = append(*number, probe{byNumber, hexutil.EncodeUint64(b.NumberU64()), index, want})
			*hash = append(*hash, probe{byHash, b.Hash().Hex(), index, want})
		}
		beyond = append(beyond, probe{byNumber, hexutil.EncodeUint64(b.NumberU64()), len(uncles), common.Hash{}})
	}
	beyond = append(beyond, probe{byNumber, hexutil.EncodeUint64(uint64(len(chain))), 0, common.Hash{}}, probe{byHash, types.EmptyUncleHash.Hex(), 0, common.Hash{}})

	http := func(g *geth) string { return "http://" + g.http }
	var none verdict
	none.ask(t, &httpCaller{http: adminClient, url: http(cut)}, slices.Concat(below, unlisted))
	if none.codes[4444] != len(below)+len(unlisted) {
		t.Fatalf("geth has not pruned its history: %v", &none)
	}
	for _, tt := range []struct {
		name     string
		upstream string
		args     []string
		answered []probe // of what is pruned; 4444 else
	}{
		{"alone", http(cut), nil, nil},
		{"alone over WebSocket", "ws://" + cut.ws, nil, nil},
		{"before one that has everything", http(cut) + "," + http(whole), nil, slices.Concat(below, unlisted)},
		{"behind one that has everything", http(whole) + "," + http(cut), nil, slices.Concat(below, unlisted)},
		{"with an archive", http(cut), []string{"--archive", file}, below},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, key := startFleet(t, tt.upstream, size{edges: 1, workers: 1, workerArgs: tt.args})
			c := f.httpCaller(f.edges[0], true, key)
			var old, recent verdict
			old.ask(t, c, below)
			old.ask(t, c, unlisted)
			recent.ask(t, c, above)
			recent.ask(t, c, beyond)
			t.Logf("pruned blocks: %v; others: %v", &old, &recent)
			if want := len(above) + len(beyond); recent.right != want {
				t.Errorf("of blocks that are not pruned %v, want %d right: %q", &recent, want, recent.examples)
			}
			if right, all := len(tt.answered), len(below)+len(unlisted); old.right != right || old.codes[4444] != all-right {
				t.Errorf("of pruned blocks %v, want %d right and %d 4444: %q", &old, right, all-right, old.examples)
			}
		})
	}
}
