package devnode

import (
	"encoding/json"
	"errors"
	"runtime"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// errPending is what geth answers (eth/api_backend.go) while it builds no block.
var errPending = errors.New("pending block is not available")

// errFullTx refuses what no lookup of uncles needs.
var errFullTx = errors.New("full transactions are not served here, ask for their hashes with false")

// ethAPI holds the methods of the eth namespace; go-ethereum's rpc package finds
// them by their names.
type ethAPI struct {
	chain *chain
}

// byNumber returns the answers about a block, nil when it is not held.
func (e *ethAPI) byNumber(number rpc.BlockNumber) (*answers, error) {
	first, last := e.chain.bounds()
	switch number {
	case rpc.PendingBlockNumber:
		return nil, errPending
	case rpc.EarliestBlockNumber:
		return e.chain.answersOf(first)
	case rpc.LatestBlockNumber, rpc.SafeBlockNumber, rpc.FinalizedBlockNumber:
		return e.chain.answersOf(last)
	default:
		return e.chain.answersOf(uint64(number))
	}
}

// byHash returns the answers about a block, nil when it is not held.
func (e *ethAPI) byHash(hash common.Hash) (*answers, error) {
	n, held := e.chain.numbers[hash]
	if !held {
		return nil, nil
	}
	return e.chain.answersOf(n)
}

// uncle picks an uncle, null when there is none.
func uncle(a *answers, err error, index hexutil.Uint) (json.RawMessage, error) {
	if a == nil || err != nil || uint64(index) >= uint64(len(a.uncles)) {
		return nil, err
	}
	return a.uncles[index], nil
}

// uncleCount counts, null when there is no block.
func uncleCount(a *answers, err error) (*hexutil.Uint, error) {
	if a == nil || err != nil {
		return nil, err
	}
	n := hexutil.Uint(len(a.uncles))
	return &n, nil
}

// block picks the block, null when there is none.
func block(a *answers, err error, fullTx bool) (json.RawMessage, error) {
	if a == nil || err != nil {
		return nil, err
	}
	if fullTx {
		return nil, errFullTx
	}
	return a.block, nil
}

// GetUncleByBlockNumberAndIndex answers eth_getUncleByBlockNumberAndIndex.
func (e *ethAPI) GetUncleByBlockNumberAndIndex(number rpc.BlockNumber, index hexutil.Uint) (json.RawMessage, error) {
	a, err := e.byNumber(number)
	return uncle(a, err, index)
}

// GetUncleByBlockHashAndIndex answers eth_getUncleByBlockHashAndIndex.
func (e *ethAPI) GetUncleByBlockHashAndIndex(hash common.Hash, index hexutil.Uint) (json.RawMessage, error) {
	a, err := e.byHash(hash)
	return uncle(a, err, index)
}

// GetUncleCountByBlockNumber answers eth_getUncleCountByBlockNumber.
func (e *ethAPI) GetUncleCountByBlockNumber(number rpc.BlockNumber) (*hexutil.Uint, error) {
	return uncleCount(e.byNumber(number))
}

// GetUncleCountByBlockHash answers eth_getUncleCountByBlockHash.
func (e *ethAPI) GetUncleCountByBlockHash(hash common.Hash) (*hexutil.Uint, error) {
	return uncleCount(e.byHash(hash))
}

// GetBlockByNumber answers eth_getBlockByNumber, with an error when fullTx is set.
func (e *ethAPI) GetBlockByNumber(number rpc.BlockNumber, fullTx bool) (json.RawMessage, error) {
	a, err := e.byNumber(number)
	return block(a, err, fullTx)
}

// GetBlockByHash answers eth_getBlockByHash, with an error when fullTx is set.
func (e *ethAPI) GetBlockByHash(hash common.Hash, fullTx bool) (json.RawMessage, error) {
	a, err := e.byHash(hash)
	return block(a, err, fullTx)
}

// BlockNumber answers eth_blockNumber.
func (e *ethAPI) BlockNumber() hexutil.Uint64 {
	_, last := e.chain.bounds()
	return hexutil.Uint64(last)
}

// ChainId answers eth_chainId.
func (e *ethAPI) ChainId() hexutil.Uint64 { return hexutil.Uint64(e.chain.id) } //nolint:staticcheck // ChainID would be eth_chainID

// Syncing answers eth_syncing: never.
func (e *ethAPI) Syncing() bool { return false }

// netAPI holds the methods of the net namespace.
type netAPI struct {
	chain *chain
}

// Version answers net_version.
func (n *netAPI) Version() string { return strconv.FormatUint(n.chain.id, 10) }

// web3API holds the methods of the web3 namespace.
type web3API struct{}

// ClientVersion answers web3_clientVersion.
func (web3API) ClientVersion() string { return "ommer-devnode/" + runtime.Version() }
