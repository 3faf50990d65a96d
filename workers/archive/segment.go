package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
)

// ErrChain reports blocks that do not belong together.
var ErrChain = errors.New("blocks do not form a chain")

// Segment is a row of blocks with what an uncles file keeps of them. Add fills an
// empty one.
type Segment struct {
	Range
	Chain  Chain
	Uncled []Uncled // the blocks that have uncles, in order
	begun  bool     // Add was called
}

// Uncled is a block that has uncles.
type Uncled struct {
	Number uint64
	Hash   common.Hash
	List   []byte // RLP of its uncles
}

// Add appends the block with header h, its hash and the RLP of its uncles, which has
// to be what the header commits to. That hash is the header's is for the caller to know.
func (s *Segment) Add(h *types.Header, hash common.Hash, list []byte) error {
	n := h.Number.Uint64()
	switch {
	case !h.Number.IsUint64() || n > maxNumber:
		return fmt.Errorf("%w: block number %v", ErrChain, h.Number)
	case s.begun && n != s.Last+1:
		return fmt.Errorf("%w: block %d behind block %d", ErrChain, n, s.Last)
	case s.begun && h.ParentHash != s.Hash, n == 0 && h.ParentHash != (common.Hash{}):
		return fmt.Errorf("%w: the parent of block %d is %v, want %v", ErrChain, n, h.ParentHash, s.Hash)
	}
	if h.UncleHash != types.EmptyUncleHash {
		if len(list) > maxList {
			return fmt.Errorf("%w: block %d has %d bytes of uncles, the limit is %d", ErrChain, n, len(list), maxList)
		}
		if got := crypto.Keccak256Hash(list); got != h.UncleHash {
			return fmt.Errorf("%w: the uncles of block %d hash to %v, sha3Uncles is %v", ErrChain, n, got, h.UncleHash)
		}
		s.Uncled = append(s.Uncled, Uncled{n, hash, bytes.Clone(list)}) // it may be part of a large body
	}
	if !s.begun {
		s.begun, s.First, s.Parent = true, n, h.ParentHash
		if n == 0 {
			s.Chain.Genesis = hash
		}
	}
	s.Last, s.Hash = n, hash
	return nil
}

// Segment returns all blocks of the file. They are verified but for the bodies of blocks
// without uncles, of which nothing is kept: one transaction has to tell the chain.
func (e *Era1) Segment(ctx context.Context) (*Segment, error) {
	s := new(Segment)
	wanted := func(h *types.Header) bool {
		return h.UncleHash != types.EmptyUncleHash || s.Chain.ID == 0 && h.TxHash != types.EmptyTxsHash
	}
	err := e.verify(ctx, wanted, func(b *Block) error {
		if s.Chain.ID == 0 {
			s.Chain.ID = chainID(b.Transactions)
		}
		return s.Add(b.Header, b.Hash, b.UncleList)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// chainID is the chain that the first of the transactions that names one is for, 0
// when none does: those from before EIP-155 may not.
func chainID(list rlp.RawValue) uint64 {
	if len(list) <= len(emptyList) {
		return 0
	}
	var txs types.Transactions
	if rlp.DecodeBytes(list, &txs) != nil {
		return 0 // a type of transaction that is not known here
	}
	for _, tx := range txs {
		if id := tx.ChainId(); id.IsUint64() && id.Sign() > 0 {
			return id.Uint64()
		}
	}
	return 0
}

// known are the networks that are told by their genesis block, and the other way
// round.
var known = []Chain{
	{params.MainnetChainConfig.ChainID.Uint64(), params.MainnetGenesisHash},
	{params.SepoliaChainConfig.ChainID.Uint64(), params.SepoliaGenesisHash},
	{params.HoodiChainConfig.ChainID.Uint64(), params.HoodiGenesisHash},
}

// complete fills in what is known of the network. It fails for a known chain ID with
// another genesis block.
func (c Chain) complete() (Chain, error) {
	for _, k := range known {
		if c.ID == 0 && c.Genesis == k.Genesis {
			c.ID = k.ID
		}
		if c.ID == k.ID && c.Genesis == (common.Hash{}) {
			c.Genesis = k.Genesis
		}
		if c.ID == k.ID && c.Genesis != k.Genesis {
			return c, fmt.Errorf("%w: chain %d begins with %v, not with %v", ErrChain, c.ID, k.Genesis, c.Genesis)
		}
	}
	return c, nil
}

// Join returns what two parts of one chain know of it together. It fails when they
// are parts of two.
func (c Chain) Join(d Chain) (Chain, error) {
	if c.ID != 0 && d.ID != 0 && c.ID != d.ID {
		return c, fmt.Errorf("%w: they are of chains %d and %d", ErrChain, c.ID, d.ID)
	}
	if none := (common.Hash{}); c.Genesis != none && d.Genesis != none && c.Genesis != d.Genesis {
		return c, fmt.Errorf("%w: of chains that begin with %v and with %v", ErrChain, c.Genesis, d.Genesis)
	}
	if c.ID == 0 {
		c.ID = d.ID
	}
	if c.Genesis == (common.Hash{}) {
		c.Genesis = d.Genesis
	}
	return c.complete()
}
