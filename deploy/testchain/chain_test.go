package testchain_test

import (
	"bytes"
	"compress/gzip"
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

// TestShape looks for each kind of block and uncle that a reader of the chain is
// promised.
func TestShape(t *testing.T) {
	blocks, err := testchain.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	depths := make(map[uint64]int)
	kinds := make(map[uint8]int)
	for i, b := range blocks {
		if b.NumberU64() != uint64(i) {
			t.Fatalf("block %d has number %v", i, b.Number())
		}
		if london := i >= testchain.London; london != (b.BaseFee() != nil) {
			t.Errorf("block %d: base fee %v", i, b.BaseFee())
		}
		if merged := i >= testchain.Merge; merged != (b.Difficulty().Sign() == 0) {
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
	if len(blocks) != testchain.Length {
		t.Errorf("%d blocks, want %d", len(blocks), testchain.Length)
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

// TestRules has go-ethereum check and execute the chain, all but the proof of work.
func TestRules(t *testing.T) {
	genesis, err := testchain.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := testchain.Blocks()
	if err != nil {
		t.Fatal(err)
	}
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
