package upstreamtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// Node serves a chain over HTTP and WebSocket, on one address. Its fields and
// methods may be used while it serves.
type Node struct {
	// URL and WSURL are where it listens, with a secret at their end.
	URL, WSURL string
	// Requests counts HTTP requests, Calls the calls of a block or an uncle.
	Requests, Calls atomic.Int64
	// Subscriptions is how many there are to its heads.
	Subscriptions atomic.Int64

	server *httptest.Server
	stop   func()

	mu        sync.Mutex
	chain     Chain
	byHash    map[common.Hash]*types.Block // those of former chains too
	finalized int64                        // -1: none
	chainID   uint64
	handler   func(w http.ResponseWriter, r *http.Request, node http.Handler)
	result    func(method, block string, index int, object map[string]any) (map[string]any, error)
	moved     chan struct{} // closed when the chain changes
	mute      bool
}

// Secret is the part of a Node's URLs that must not be seen anywhere.
const Secret = "0123456789abcdef-secret"

// Start serves a chain until the test ends. Nothing of it is finalized.
func Start(t testing.TB, c Chain) *Node {
	n := &Node{byHash: make(map[common.Hash]*types.Block), finalized: -1, chainID: ChainID, moved: make(chan struct{})}
	n.SetChain(c)
	calls := rpc.NewServer()
	if err := calls.RegisterName("eth", &ethAPI{n}); err != nil {
		t.Fatal(err)
	}
	ws := calls.WebsocketHandler([]string{"*"})
	node := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			ws.ServeHTTP(w, r)
			return
		}
		calls.ServeHTTP(w, r)
	})
	n.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Requests.Add(1)
		n.mu.Lock()
		handler := n.handler
		n.mu.Unlock()
		if handler != nil {
			// A server sees its client leave only once the body has been read.
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			handler(w, r, node)
			return
		}
		node.ServeHTTP(w, r)
	}))
	n.stop = sync.OnceFunc(func() {
		calls.Stop() // ends WebSocket connections, which the server below does not know
		n.server.CloseClientConnections()
		n.server.Close()
	})
	t.Cleanup(n.stop)
	n.URL = n.server.URL + "/v3/" + Secret
	n.WSURL = "ws" + strings.TrimPrefix(n.URL, "http")
	return n
}

// Stop ends the node before the test does.
func (n *Node) Stop() { n.stop() }

// SetChain replaces the canonical chain. Blocks of the former one can still be found
// by their hash.
func (n *Node) SetChain(c Chain) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.chain = c
	for _, b := range c {
		n.byHash[b.Hash()] = b
	}
	close(n.moved)
	n.moved = make(chan struct{})
}

// Mute has the node know no subscriptions.
func (n *Node) Mute() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mute = true
}

// SetFinalized sets the last finalized block, -1 for none.
func (n *Node) SetFinalized(number int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.finalized = number
}

// SetChainID sets the answer to eth_chainId.
func (n *Node) SetChainID(id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.chainID = id
}

// Handle puts f in front of the node, for faults of the transport; nil takes it away.
func (n *Node) Handle(f func(w http.ResponseWriter, r *http.Request, node http.Handler)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handler = f
}

// Falsify lets f replace each block and uncle, nil for null, before it is sent; block
// is the first parameter of the call, index the second or -1. A nil f takes it away.
func (n *Node) Falsify(f func(method, block string, index int, object map[string]any) (map[string]any, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.result = f
}

// Error is a JSON-RPC error with a code.
type Error struct {
	Code    int
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrorCode returns the code.
func (e *Error) ErrorCode() int { return e.Code }

// ethAPI is the eth namespace of a Node. Its texts and codes are go-ethereum's.
type ethAPI struct{ n *Node }

// ChainId answers eth_chainId.
func (a *ethAPI) ChainId() hexutil.Uint64 { //nolint:staticcheck // go-ethereum's server derives the call's name from it
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	return hexutil.Uint64(a.n.chainID)
}

// BlockNumber answers eth_blockNumber.
func (a *ethAPI) BlockNumber() hexutil.Uint64 {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	return hexutil.Uint64(len(a.n.chain) - 1)
}

// NewHeads answers eth_subscribe with "newHeads".
func (a *ethAPI) NewHeads(ctx context.Context) (*rpc.Subscription, error) {
	a.n.mu.Lock()
	moved, mute := a.n.moved, a.n.mute
	a.n.mu.Unlock()
	to, ok := rpc.NotifierFromContext(ctx)
	if !ok || mute {
		return nil, &Error{Code: -32601, Message: "the method eth_subscribe does not exist/is not available"}
	}
	sub := to.CreateSubscription()
	a.n.Subscriptions.Add(1)
	go func() {
		defer a.n.Subscriptions.Add(-1)
		for {
			select {
			case <-moved:
			case <-sub.Err(): //nolint:errcheck // whatever the reason, it has ended
				return
			}
			a.n.mu.Lock()
			head := a.n.chain[len(a.n.chain)-1]
			moved = a.n.moved
			a.n.mu.Unlock()
			if to.Notify(sub.ID, header(head.Header())) != nil {
				return
			}
		}
	}()
	return sub, nil
}

// GetBlockByNumber answers eth_getBlockByNumber.
func (a *ethAPI) GetBlockByNumber(_ context.Context, number rpc.BlockNumber, _ bool) (map[string]any, error) {
	b, err := a.n.blockAt(number)
	return a.n.answer("eth_getBlockByNumber", number.String(), -1, block(b), err)
}

// GetBlockByHash answers eth_getBlockByHash.
func (a *ethAPI) GetBlockByHash(_ context.Context, hash common.Hash, _ bool) (map[string]any, error) {
	return a.n.answer("eth_getBlockByHash", hash.Hex(), -1, block(a.n.blockOf(hash)), nil)
}

// GetUncleByBlockNumberAndIndex answers the call of that name.
func (a *ethAPI) GetUncleByBlockNumberAndIndex(_ context.Context, number rpc.BlockNumber, index hexutil.Uint) (map[string]any, error) {
	b, err := a.n.blockAt(number)
	return a.n.answer("eth_getUncleByBlockNumberAndIndex", number.String(), int(index), uncleOf(b, index), err)
}

// GetUncleByBlockHashAndIndex answers the call of that name.
func (a *ethAPI) GetUncleByBlockHashAndIndex(_ context.Context, hash common.Hash, index hexutil.Uint) (map[string]any, error) {
	return a.n.answer("eth_getUncleByBlockHashAndIndex", hash.Hex(), int(index), uncleOf(a.n.blockOf(hash), index), nil)
}

func (n *Node) answer(method, name string, index int, object map[string]any, err error) (map[string]any, error) {
	n.Calls.Add(1)
	n.mu.Lock()
	falsify := n.result
	n.mu.Unlock()
	if falsify != nil && err == nil {
		return falsify(method, name, index, object)
	}
	return object, err
}

func (n *Node) blockOf(hash common.Hash) *types.Block {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byHash[hash]
}

func (n *Node) blockAt(number rpc.BlockNumber) (*types.Block, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := int64(number)
	switch number {
	case rpc.LatestBlockNumber:
		at = int64(len(n.chain) - 1)
	case rpc.EarliestBlockNumber:
		at = 0
	case rpc.PendingBlockNumber:
		return nil, errors.New("pending block is not available")
	case rpc.SafeBlockNumber:
		if at = n.finalized; at < 0 {
			return nil, errors.New("safe block not found")
		}
	case rpc.FinalizedBlockNumber:
		if at = n.finalized; at < 0 {
			return nil, errors.New("finalized block not found")
		}
	}
	if at >= int64(len(n.chain)) {
		return nil, nil
	}
	return n.chain[at], nil
}

// Render is the object that a Node sends of a block.
func Render(b *types.Block) map[string]any { return block(b) }

// block renders a block the way RPCMarshalBlock of go-ethereum does, with the hashes
// of its transactions.
func block(b *types.Block) map[string]any {
	if b == nil {
		return nil
	}
	object := header(b.Header())
	object["size"] = hexutil.Uint64(b.Size())
	hashes := []common.Hash{}
	for _, tx := range b.Transactions() {
		hashes = append(hashes, tx.Hash())
	}
	object["transactions"] = hashes
	uncles := []common.Hash{}
	for _, u := range b.Uncles() {
		uncles = append(uncles, u.Hash())
	}
	object["uncles"] = uncles
	return object
}

func uncleOf(b *types.Block, index hexutil.Uint) map[string]any {
	if b == nil || int(index) >= len(b.Uncles()) {
		return nil
	}
	object := block(types.NewBlockWithHeader(b.Uncles()[index]))
	delete(object, "transactions")
	return object
}

// header renders a header by go-ethereum's own code, without what it has not.
func header(h *types.Header) map[string]any {
	enc, err := json.Marshal(h)
	var object map[string]any
	if err == nil {
		err = json.Unmarshal(enc, &object)
	}
	if err != nil {
		panic(err) // a generated header always has a JSON form
	}
	for name, value := range object {
		if value == nil {
			delete(object, name)
		}
	}
	return object
}
