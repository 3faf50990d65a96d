// Package testchain generates small chains with uncles. The devnode carries one, so
// that it has something to serve without any file; the measuring program has geth
// import that one, and the end-to-end tests a longer one with a fork of it.
//
// Only generators, measuring programs and tests may import it: it brings
// go-ethereum's block processing along, which what is deployed does without. The
// same chains come out every time, and go-ethereum accepts them: every consensus rule
// but proof of work holds.
package testchain

import (
	"crypto/ecdsa"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// What the carried chain, which is the Sample, is like.
const (
	ChainID     = 1337
	Length      = 64 // blocks, with the genesis block
	FirstUncles = 8
	London      = 32
	Merge       = 60
)

// Shape is what a chain is like. Uncles stand in blocks FirstUncles to Merge-1; those
// in the first blocks after London are partly older than it and have no base fee.
// Chains that differ in nothing but Length and Fork have their genesis block in common.
type Shape struct {
	Length        int    // blocks, with the genesis block
	London, Merge uint64 // the first blocks with their rules
	// Fork is the last block that the chain shares with the one of the same Shape
	// but no Fork. Behind it the blocks, the uncles and how many there are of them
	// are others. Zero: it is that chain.
	Fork uint64
}

// Sample is the carried chain.
func Sample() Shape { return Shape{Length: Length, London: London, Merge: Merge} }

// logger is the address of a contract that emits one log whenever it is called, so
// that blooms are not all empty.
const logger = "0x0000000000000000000000000000000000000a11"

// gwei is the unit of gas prices.
const gwei = params.GWei

// payer is the key of the account that sends every transaction.
func payer() (*ecdsa.PrivateKey, error) {
	return crypto.ToECDSA(seed(0, "payer"))
}

// Genesis is what the Sample begins with.
func Genesis() (*core.Genesis, error) { return Sample().Genesis() }

// Blocks generates the Sample.
func Blocks() ([]*types.Block, error) { return Sample().Blocks() }

// Write writes the Sample as `geth export` does.
func Write(w io.Writer) error {
	blocks, err := Blocks()
	if err != nil {
		return err
	}
	return Export(w, blocks)
}

// Genesis is what the chain begins with, its rules among them.
func (s Shape) Genesis() (*core.Genesis, error) {
	key, err := payer()
	if err != nil {
		return nil, err
	}
	return &core.Genesis{
		Config: &params.ChainConfig{
			ChainID:                 big.NewInt(ChainID),
			HomesteadBlock:          new(big.Int),
			EIP150Block:             new(big.Int),
			EIP155Block:             new(big.Int),
			EIP158Block:             new(big.Int),
			ByzantiumBlock:          new(big.Int),
			ConstantinopleBlock:     new(big.Int),
			PetersburgBlock:         new(big.Int),
			IstanbulBlock:           new(big.Int),
			MuirGlacierBlock:        new(big.Int),
			BerlinBlock:             new(big.Int),
			LondonBlock:             new(big.Int).SetUint64(s.London),
			MergeNetsplitBlock:      new(big.Int).SetUint64(s.Merge),
			TerminalTotalDifficulty: new(big.Int).Mul(params.GenesisDifficulty, new(big.Int).SetUint64(s.Merge)),
			Ethash:                  new(params.EthashConfig),
		},
		Nonce:      0x6f6d6d6572,
		Timestamp:  1_600_000_000,
		ExtraData:  []byte("ommer"),
		GasLimit:   params.GenesisGasLimit,
		Difficulty: params.GenesisDifficulty,
		Alloc: types.GenesisAlloc{
			crypto.PubkeyToAddress(key.PublicKey): {Balance: new(big.Int).Mul(big.NewInt(params.Ether), big.NewInt(1000))},
			common.HexToAddress(logger):           {Balance: new(big.Int), Code: common.FromHex("0x60006000a0")}, // LOG0
		},
	}, nil
}

// Blocks generates the chain, the genesis block first.
func (s Shape) Blocks() ([]*types.Block, error) {
	genesis, err := s.Genesis()
	if err != nil {
		return nil, err
	}
	key, err := payer()
	if err != nil {
		return nil, err
	}
	g := generator{shape: s, config: genesis.Config, key: key}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), s.Length-1, g.block)
	if g.err != nil {
		return nil, g.err
	}
	return append([]*types.Block{genesis.ToBlock()}, blocks...), nil
}

// Export writes blocks as `geth export` does: their RLP, one after another.
func Export(w io.Writer, blocks []*types.Block) error {
	for _, b := range blocks {
		if err := b.EncodeRLP(w); err != nil {
			return fmt.Errorf("block %d: %w", b.NumberU64(), err)
		}
	}
	return nil
}

// generator fills the blocks.
type generator struct {
	shape  Shape
	config *params.ChainConfig
	key    *ecdsa.PrivateKey
	err    error // the first one
}

func (g *generator) block(_ int, b *core.BlockGen) {
	n := b.Number().Uint64()
	name, uncles := "sample", n%3 // none, one or two
	if g.forked(n) {
		name, uncles = "fork", (n+1)%3
	}
	b.SetCoinbase(common.Address(g.seed(n, "miner")[:20]))
	b.SetExtra(fmt.Appendf(nil, "ommer %s %d", name, n))
	if n < g.shape.Merge {
		b.SetNonce(types.BlockNonce(g.seed(n, "nonce")[:8]))
	}
	for k := range n % 4 {
		g.transaction(b, n+k)
	}
	if n >= FirstUncles && n < g.shape.Merge {
		for k := range uncles {
			g.uncle(b, n, k)
		}
	}
}

// transaction adds one of each type in turn.
func (g *generator) transaction(b *core.BlockGen, turn uint64) {
	var (
		to    = common.HexToAddress(logger)
		nonce = b.TxNonce(crypto.PubkeyToAddress(g.key.PublicKey))
		price = big.NewInt(2 * gwei)
		data  types.TxData
		sign  = types.LatestSigner(g.config)
	)
	switch turn % 4 {
	case 0: // from before EIP-155, without a chain id
		data = &types.LegacyTx{Nonce: nonce, To: &to, Gas: 50_000, GasPrice: price}
		sign = types.HomesteadSigner{}
	case 1:
		data = &types.LegacyTx{Nonce: nonce, To: &to, Gas: 50_000, GasPrice: price, Value: big.NewInt(1)}
	case 2:
		data = &types.AccessListTx{
			ChainID: g.config.ChainID, Nonce: nonce, To: &to, Gas: 50_000, GasPrice: price,
			AccessList: types.AccessList{{Address: to, StorageKeys: []common.Hash{{1}}}},
		}
	default:
		data = &types.DynamicFeeTx{
			ChainID: g.config.ChainID, Nonce: nonce, To: &to, Gas: 50_000, GasFeeCap: price, GasTipCap: big.NewInt(gwei),
		}
		if b.Number().Uint64() < g.shape.London {
			data = &types.LegacyTx{Nonce: nonce, Gas: 80_000, GasPrice: price, Data: common.FromHex("0x00")} // creates a contract
		}
	}
	tx, err := types.SignNewTx(g.key, sign, data)
	if err != nil {
		if g.err == nil {
			g.err = fmt.Errorf("block %v: %w", b.Number(), err)
		}
		return
	}
	b.AddTx(tx)
}

// uncle adds the k-th uncle to block n, 1 to 6 generations up. What nobody
// verifies of an uncle is filled with noise, so that no field is empty in all of
// them.
func (g *generator) uncle(b *core.BlockGen, n, k uint64) {
	depth := 1 + (n/3+3*k)%6
	parent := b.PrevBlock(int(n - depth - 2)) // of number n-depth-1
	h := &types.Header{
		ParentHash:  parent.Hash(),
		Number:      new(big.Int).SetUint64(n - depth),
		UncleHash:   types.EmptyUncleHash,
		Coinbase:    common.Address(g.seed(n, "uncle miner", k)[:20]),
		Root:        common.Hash(g.seed(n, "state", k)),
		TxHash:      types.EmptyTxsHash,
		ReceiptHash: types.EmptyReceiptsHash,
		MixDigest:   common.Hash(g.seed(n, "mix", k)),
		Nonce:       types.BlockNonce(g.seed(n, "uncle nonce", k)[:8]),
	}
	if k == 0 {
		h.UncleHash = common.Hash(g.seed(n, "uncles", k)) // an uncle may have had uncles
	}
	if n%2 == 0 {
		h.Extra = g.seed(n, "extra", k)[:n%33]
		h.TxHash = common.Hash(g.seed(n, "transactions", k))
		h.ReceiptHash = common.Hash(g.seed(n, "receipts", k))
		h.Bloom.Add(g.seed(n, "log", k))
		h.GasUsed = 21_000 * (1 + n)
	}
	b.AddUncle(h) // sets gas limit, base fee, time and difficulty
	h.Time = parent.Time() + 1 + n%15
	h.Difficulty = ethash.CalcDifficulty(g.config, h.Time, parent.Header())
}

// forked says whether block n is one of the fork's own.
func (g *generator) forked(n uint64) bool { return g.shape.Fork > 0 && n > g.shape.Fork }

// seed is seed, with other bytes in the fork's own blocks.
func (g *generator) seed(n uint64, what string, k ...uint64) []byte {
	if g.forked(n) {
		what = "fork " + what
	}
	return seed(n, what, k...)
}

// seed returns bytes that depend on nothing but the arguments.
func seed(n uint64, what string, k ...uint64) []byte {
	b := binary.BigEndian.AppendUint64([]byte(what), n)
	for _, k := range k {
		b = binary.BigEndian.AppendUint64(b, k)
	}
	return crypto.Keccak256(b)
}
