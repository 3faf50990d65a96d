package upstreamtest

import (
	"context"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// GetUncleCountByBlockNumber answers the call of that name. It is not falsified.
func (a *ethAPI) GetUncleCountByBlockNumber(_ context.Context, number rpc.BlockNumber) (*hexutil.Uint, error) {
	b, err := a.n.blockAt(number)
	if b == nil || err != nil {
		return nil, err
	}
	n := hexutil.Uint(len(b.Uncles()))
	return &n, nil
}
