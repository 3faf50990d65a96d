package testchain_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/deploy/testchain"
)

// TestCarriedChain compares the chain that the devnode carries with a newly
// generated one. The compression is left out: it may change with the toolchain.
func TestCarriedChain(t *testing.T) {
	const limit = 64 << 10
	carried, err := os.ReadFile("../devnode/sample.rlp.gz")
	if err != nil {
		t.Fatal(err)
	}
	if len(carried) > limit {
		t.Errorf("%d bytes, want at most %d", len(carried), limit)
	}
	z, err := gzip.NewReader(bytes.NewReader(carried))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := testchain.Write(&want); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("the carried chain is not what is generated: run go generate in deploy/devnode")
	}
}

// shapes are the carried chain, a longer one, and a fork of that.
var shapes = map[string]testchain.Shape{
	"sample": testchain.Sample(),
	"long":   {Length: 128, London: 40, Merge: 112},
	"fork":   {Length: 120, London: 40, Merge: 112, Fork: 80},
}

func blocksOf(t *testing.T, s testchain.Shape) []*types.Block {
	t.Helper()
	blocks, err := s.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

func TestShape(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) { testShape(t, shape) })
	}
}

// testShape looks for each kind of block and uncle that a reader of a chain is
// promised.
func testShape(t *testing.T, shape testchain.Shape) {
	blocks := blocksOf(t, shape)
	seen := make(map[string]int)
	depths := make(map[uint64]int)
	kinds := make(map[uint8]int)
	for i, b := range blocks {
		if b.NumberU64() != uint64(i) {
			t.Fatalf("block %d has number %v", i, b.Number())
		}
		if london := uint64(i) >= shape.London; london != (b.BaseFee() != nil) {
			t.Errorf("block %d: base fee %v", i, b.BaseFee())
		}
		if merged := uint64(i) >= shape.Merge; merged != (b.Difficulty().Sign() == 0) {
			t.Errorf("block %d: difficulty %v", i, b.Difficulty())
		}
		for _, tx := range b.Transactions() {
			kinds[tx.Type()]++
			if !tx.Protected() {
				seen["transaction without a chain id"]++
			}
		}
		seen[[]string{"no uncle", "one uncle", "two uncles"}[len(b.Uncles())]]++
		for _, u := range b.Uncles() {
			depths[b.NumberU64()-u.Number.Uint64()]++
			for what, is := range map[string]bool{
				"uncle with a base fee":                   u.BaseFee != nil,
				"uncle without a base fee":                u.BaseFee == nil,
				"uncle without a base fee in a later one": u.BaseFee == nil && b.BaseFee() != nil,
				"uncle with uncles":                       u.UncleHash != types.EmptyUncleHash,
				"uncle with transactions":                 u.TxHash != types.EmptyTxsHash,
				"uncle with logs":                         u.Bloom != types.Bloom{},
				"uncle without extra data":                len(u.Extra) == 0,
				"uncle with extra data":                   len(u.Extra) > 0,
			} {
				if is {
					seen[what]++
				}
			}
		}
	}
	if len(blocks) != shape.Length {
		t.Errorf("%d blocks, want %d", len(blocks), shape.Length)
	}
	for depth := range uint64(6) {
		if depths[depth+1] == 0 {
			t.Errorf("no uncle %d generations up: %v", depth+1, depths)
		}
	}
	for kind := range uint8(3) {
		if kinds[kind] == 0 {
			t.Errorf("no transaction of type %d: %v", kind, kinds)
		}
	}
	for _, what := range []string{
		"no uncle", "one uncle", "two uncles", "transaction without a chain id", "uncle with a base fee", "uncle without a base fee",
		"uncle without a base fee in a later one", "uncle with uncles", "uncle with transactions", "uncle with logs",
		"uncle without extra data", "uncle with extra data",
	} {
		if seen[what] == 0 {
			t.Errorf("no %s: %v", what, seen)
		}
	}
}

// TestFork compares a fork with the chain that it leaves: which blocks they share,
// and whether a reader who mixes their uncles up would be noticed.
func TestFork(t *testing.T) {
	shape := shapes["fork"]
	trunk, fork := blocksOf(t, shapes["long"]), blocksOf(t, shape)
	kinds := make(map[string]int)
	for n, b := range fork {
		switch shared := uint64(n) <= shape.Fork; {
		case shared != (b.Hash() == trunk[n].Hash()):
			t.Errorf("block %d: shared is %v, want %v", n, !shared, shared)
		case shared || uint64(n) >= shape.Merge:
			continue
		}
		ours, theirs := b.Uncles(), trunk[n].Uncles()
		if len(ours) == len(theirs) {
			t.Errorf("block %d has %d uncles on both sides", n, len(ours))
		}
		kinds[fmt.Sprintf("%d in place of %d", len(ours), len(theirs))]++
		for _, u := range ours {
			for _, v := range theirs {
				if u.Hash() == v.Hash() {
					t.Errorf("block %d: uncle %v is on both sides", n, u.Hash())
				}
			}
		}
	}
	for _, kind := range []string{"0 in place of 2", "1 in place of 0", "2 in place of 1"} {
		if kinds[kind] == 0 {
			t.Errorf("no block with %s uncles: %v", kind, kinds)
		}
	}
}

func TestRules(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) { testRules(t, shape) })
	}
}

// testRules has go-ethereum check and execute a chain, all but the proof of work.
func testRules(t *testing.T, shape testchain.Shape) {
	genesis, err := shape.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	blocks := blocksOf(t, shape)
	c, err := core.NewBlockChain(rawdb.NewMemoryDatabase(), genesis, beacon.New(ethash.NewFaker()), core.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	if n, err := c.InsertChain(blocks[1:]); err != nil {
		t.Fatalf("block %d is refused: %v", n+1, err)
	}
	if got, want := c.CurrentBlock().Hash(), blocks[len(blocks)-1].Hash(); got != want {
		t.Errorf("head %v, want %v", got, want)
	}
}
