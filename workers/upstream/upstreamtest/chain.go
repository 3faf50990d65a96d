// Package upstreamtest is an Ethereum node for tests: a generated chain with uncles
// behind go-ethereum's own JSON-RPC server, and the ways in which a node can fail.
//
// It is for tests only and must be linked into no binary.
package upstreamtest

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// ChainID is the chain that a Node serves unless told otherwise.
const ChainID = 1337

// London is the first block of a Chain whose header has a base fee.
const London = 10

// Chain is a list of blocks by number, from the genesis on.
type Chain []*types.Block

// UnclesAt is how many uncles block n of a Chain has: 0, 1 and 2 in turn from block 3 on.
func UnclesAt(n uint64) int {
	if n < 3 {
		return 0
	}
	return int(n % 3)
}

// Generate returns a chain of the given length beyond the genesis. Two chains of
// different seeds share their first fork blocks and differ from there on; the same
// arguments give the same chain.
func Generate(length, fork int, seed string) Chain {
	config := *params.AllEthashProtocolChanges
	config.LondonBlock = big.NewInt(London)
	config.ArrowGlacierBlock, config.GrayGlacierBlock = nil, nil
	genesis := &core.Genesis{Config: &config, Difficulty: big.NewInt(1 << 17), GasLimit: 30_000_000}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), length, func(i int, g *core.BlockGen) {
		n := g.Number().Uint64()
		name := "common"
		if n > uint64(fork) {
			name = seed
		}
		g.SetExtra(fmt.Appendf(nil, "%s %d", name, n))
		g.SetCoinbase(common.BigToAddress(g.Number()))
		for u := range UnclesAt(n) {
			parent := g.PrevBlock(i - 2 - u%2)
			g.AddUncle(&types.Header{
				ParentHash: parent.Hash(),
				Number:     new(big.Int).Add(parent.Number(), common.Big1),
				UncleHash:  types.EmptyUncleHash,
				TxHash:     types.EmptyTxsHash, ReceiptHash: types.EmptyReceiptsHash,
				Coinbase: common.BytesToAddress([]byte{0xcc, byte(u)}),
				Extra:    fmt.Appendf(nil, "uncle %d of %s %d", u, name, n),
			})
		}
	})
	return append(Chain{genesis.ToBlock()}, blocks...)
}
