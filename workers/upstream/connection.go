package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// connection is the client of a node once it was reached and has told its chain.
type connection struct {
	mu         sync.Mutex
	client     *rpc.Client // nil until connected, and after the node went down
	connecting *connecting // under way, else nil
	closed     bool
	ctx        context.Context // of what runs in the background; ends with close
	cancel     context.CancelFunc
	background sync.WaitGroup
}

// connecting is an attempt to connect that its callers share.
type connecting struct {
	done   chan struct{}
	client *rpc.Client // after done
	err    error       // after done
}

// call sends a batch. Its error is about all of it, clean of secrets and with a
// reason; those of the elements are as go-ethereum left them.
func (n *node) call(ctx context.Context, batch []rpc.BatchElem) error {
	client, err := n.connected(ctx)
	if err != nil {
		return err
	}
	n.metrics.called(len(batch))
	if err := client.BatchCallContext(ctx, batch); err != nil {
		return n.scrub.callError(err)
	}
	return nil
}

// callEach sends the elements of a batch one after the other, for a node that takes no
// batches.
func (n *node) callEach(ctx context.Context, batch []rpc.BatchElem) error {
	client, err := n.connected(ctx)
	if err != nil {
		return err
	}
	for i := range batch {
		e := &batch[i]
		n.metrics.called(1)
		e.Error = client.CallContext(ctx, e.Result, e.Method, e.Args...)
		if _, said := errors.AsType[rpc.Error](e.Error); e.Error != nil && !said && !errors.Is(e.Error, rpc.ErrNoResult) {
			return n.scrub.callError(e.Error)
		}
	}
	return nil
}

// connected returns the client of a node that has told its chain. Callers that come
// while a connection is being made share the attempt and its outcome.
func (n *node) connected(ctx context.Context) (*rpc.Client, error) {
	n.mu.Lock()
	if n.client != nil || n.closed {
		defer n.mu.Unlock()
		if n.closed {
			return nil, fmt.Errorf("%w: closed", ErrUnreachable)
		}
		return n.client, nil
	}
	c := n.connecting
	if c == nil {
		c = &connecting{done: make(chan struct{})}
		n.connecting = c
		n.background.Go(func() { n.connect(c) })
	}
	n.mu.Unlock()
	select {
	case <-c.done:
		return c.client, c.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: no connection in time", ErrUnreachable)
	}
}

func (n *node) connect(c *connecting) {
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.CallTimeout)
	defer cancel()
	client, err := n.dial(ctx)

	n.mu.Lock()
	n.connecting = nil
	if err == nil && n.closed {
		defer client.Close()
		client, err = nil, fmt.Errorf("%w: closed", ErrUnreachable)
	}
	n.client, c.client, c.err = client, client, err
	n.mu.Unlock()
	close(c.done)
}

// dial makes a client and asks for the chain, so that no block of another chain is
// ever served.
func (n *node) dial(ctx context.Context) (*rpc.Client, error) {
	client, err := rpc.DialOptions(ctx, n.url, n.options()...)
	if err != nil {
		return nil, n.scrub.callError(err)
	}
	var id hexutil.Big
	n.metrics.called(1)
	if err := client.CallContext(ctx, &id, "eth_chainId"); err != nil {
		client.Close()
		err = n.scrub.callError(err)
		if errors.Is(err, errNoBlock) {
			err = fmt.Errorf("%w: %v", ErrFailed, err.Error()) // no longer errNoBlock
		}
		return nil, fmt.Errorf("eth_chainId: %w", err)
	}
	if err := n.chain.check(id.ToInt()); err != nil {
		client.Close()
		return nil, err
	}
	n.batch.Store(int32(n.terms.batch)) // it may be another one behind the same address
	n.single.Store(false)
	return client, nil
}

// sameChain asks a node that is connected for its chain again.
func (n *node) sameChain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.CallTimeout)
	defer cancel()
	var id hexutil.Big
	batch := []rpc.BatchElem{{Method: "eth_chainId", Result: &id}}
	if err := n.callAsFits(ctx, batch); err != nil {
		return err
	}
	if err := batch[0].Error; err != nil {
		return fmt.Errorf("%w: eth_chainId: %s", ErrFailed, n.scrub.text(err.Error()))
	}
	return n.chain.check(id.ToInt())
}

func (n *node) options() []rpc.ClientOption {
	if n.http == nil {
		return []rpc.ClientOption{rpc.WithWebsocketMessageSizeLimit(n.cfg.MaxResponse)}
	}
	return []rpc.ClientOption{rpc.WithHTTPClient(n.http), rpc.WithHeaders(idempotent)}
}

// hangUp drops the connection of a node that is down, so that it is connected to anew:
// what it is by then, or which chain it serves, may have changed.
func (n *node) hangUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if client := n.client; client != nil && !n.closed {
		n.client = nil
		n.background.Go(client.Close) // it may wait for a WebSocket's close frame
	}
	if n.http != nil {
		n.http.CloseIdleConnections()
	}
}

// close ends what runs in the background, and the connection.
func (n *node) close() {
	n.mu.Lock()
	client := n.client
	n.client, n.closed = nil, true
	n.mu.Unlock()
	n.cancel()
	if client != nil {
		client.Close()
	}
	n.background.Wait()
	if n.http != nil {
		n.http.CloseIdleConnections()
	}
}
