package transcript

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/deploy/testchain"
)

// Chain is what sources answer from.
type Chain struct {
	// Blocks are the canonical blocks by number. The last one, latest, has uncles.
	Blocks []*types.Block
	// Finalized is the number of the block that is both safe and finalized. It has
	// uncles too.
	Finalized uint64
	// Side stands at the height of the last block and is not canonical. It has one
	// uncle.
	Side *types.Block
}

// Sample is the chain that every conversation is about: that of package testchain
// up to its last block with uncles.
func Sample() (Chain, error) {
	blocks, err := testchain.Blocks()
	if err != nil {
		return Chain{}, err
	}
	c := Chain{Blocks: blocks[:testchain.Merge], Finalized: testchain.Merge - 4}
	head, final := c.Blocks[testchain.Merge-1], c.Blocks[c.Finalized]
	if len(head.Uncles()) != 2 || len(final.Uncles()) != 2 {
		return Chain{}, fmt.Errorf("transcript: %d and %d uncles in the blocks of the tags, want 2", len(head.Uncles()), len(final.Uncles()))
	}
	side := head.Header()
	uncles := []*types.Header{final.Uncles()[1]}
	side.Extra, side.UncleHash = []byte("a block that lost"), types.CalcUncleHash(uncles)
	c.Side = types.NewBlockWithHeader(side).WithBody(types.Body{Uncles: uncles})
	return c, nil
}
