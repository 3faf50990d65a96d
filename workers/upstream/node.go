package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/ommer/ommer/schema"
)

// node is one upstream.
type node struct {
	name    string
	url     string // has secrets: for dialling only
	cfg     *Config
	chain   *chain
	scrub   scrubber
	log     *slog.Logger
	http    *http.Client // nil for WebSocket
	metrics *nodeMetrics

	health    health
	latest    atomic.Uint64 // the highest block it has told of, plus one; 0 before
	finalized atomic.Uint64 // likewise the last finalized one
	canon     *canon
	refused   schema.Hash // a head that was not followed, logged once; under canon.mu

	slots   chan struct{} // one value per lookup in flight
	waiting atomic.Int64

	mu         sync.Mutex
	client     *rpc.Client // nil until connected, and after it went down
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

func newNode(cfg *Config, raw, name string, ch *chain, view *canon) *node {
	n := &node{
		name: name, url: raw, cfg: cfg, chain: ch, canon: view, scrub: newScrubber(raw),
		log:   cfg.Logger.With("upstream", name),
		slots: make(chan struct{}, cfg.InFlight),
	}
	if u, err := url.Parse(raw); err == nil && strings.HasPrefix(u.Scheme, "http") {
		n.http = newHTTPClient(cfg.InFlight, cfg.MaxResponse)
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// call sends a batch. Its error is about all of it, clean of secrets and with a
// reason; those of the elements are as go-ethereum left them.
func (n *node) call(ctx context.Context, batch []rpc.BatchElem) error {
	client, err := n.connected(ctx)
	if err != nil {
		return err
	}
	if err := client.BatchCallContext(ctx, batch); err != nil {
		return n.scrub.callError(err)
	}
	return nil
}

// enter waits for a turn. leave gives it back.
func (n *node) enter(ctx context.Context) error {
	select {
	case n.slots <- struct{}{}:
		return nil
	default:
	}
	if n.waiting.Add(1) > int64(n.cfg.Waiting) {
		n.waiting.Add(-1)
		return fmt.Errorf("%w: %d lookups wait for it", ErrOverloaded, n.cfg.Waiting)
	}
	defer n.waiting.Add(-1)
	select {
	case n.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: its turn did not come in time", ErrOverloaded)
	}
}

func (n *node) leave() { <-n.slots }

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
	return client, nil
}

func (n *node) options() []rpc.ClientOption {
	if n.http == nil {
		return []rpc.ClientOption{rpc.WithWebsocketMessageSizeLimit(n.cfg.MaxResponse)}
	}
	return []rpc.ClientOption{rpc.WithHTTPClient(n.http), rpc.WithHeaders(idempotent)}
}

// succeeded records that a lookup was answered.
func (n *node) succeeded() {
	n.logUp(n.health.succeeded(time.Now()))
}

// polled records that a question in the background was answered.
func (n *node) polled() {
	n.logUp(n.health.polled(time.Now()))
}

func (n *node) logUp(changed bool, downFor time.Duration) {
	if changed {
		n.log.Info("upstream is up", "chain_id", n.chain.String(), "down_for", downFor.Round(time.Millisecond))
	}
}

// failed records that the node gave no usable answer, unless that is no fault of
// its own. A node that goes down is connected to anew: what it is by then, or which
// chain it serves, may have changed.
func (n *node) failed(err error) {
	if errors.Is(err, ErrPruned) || errors.Is(err, ErrUnknownFields) {
		return
	}
	if !n.health.failed(time.Now(), err) {
		return
	}
	n.log.Warn("upstream is down", "reason", err)
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
