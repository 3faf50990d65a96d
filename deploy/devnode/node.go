package devnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/net/netutil"
)

// Node serves blocks from files.
type Node struct {
	log      *slog.Logger
	chain    *chain
	listener net.Listener
	rpc      *rpc.Server
	http     *http.Server
	closing  func() error // once
}

// New reads and checks the blocks, which takes about 0.2 s for a full era1 file, and
// listens. The caller has to call Run or Close.
func New(cfg Config) (*Node, error) {
	if cfg.Addr == "" {
		cfg.Addr = DefaultAddr
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	// Listen first: a port that is taken shows before any work was done.
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("devnode: %w", err)
	}
	c, err := openChain(cfg)
	if err != nil {
		_ = l.Close() // never used
		return nil, fmt.Errorf("devnode: %w", err)
	}
	n := &Node{log: cfg.Logger, chain: c, listener: l, rpc: rpc.NewServer()}
	n.closing = sync.OnceValue(n.release)
	n.rpc.SetBatchLimits(maxBatch, maxBatchAnswer)
	n.rpc.SetHTTPBodyLimit(maxBody)
	err = errors.Join(
		n.rpc.RegisterName("eth", &ethAPI{chain: c}),
		n.rpc.RegisterName("net", &netAPI{chain: c}),
		n.rpc.RegisterName("web3", web3API{}),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("devnode: %w", err), n.Close())
	}
	n.http = &http.Server{
		Handler:           n.rpc,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	return n, nil
}

// URL is where the node answers, valid from New on.
func (n *Node) URL() string { return "http://" + n.listener.Addr().String() }

// ChainID is what eth_chainId answers.
func (n *Node) ChainID() uint64 { return n.chain.id }

// Uncled is the number of a block that has uncles, for examples; false when none
// has.
func (n *Node) Uncled() (uint64, bool) { return n.chain.uncled, n.chain.uncled != 0 }

// Run serves until ctx is done, answers what is in flight, and closes the node.
// It may be called once.
func (n *Node) Run(ctx context.Context) error {
	first, last := n.chain.bounds()
	n.log.InfoContext(ctx, "devnode serves", "url", n.URL(), "chain_id", n.chain.id,
		"blocks", len(n.chain.numbers), "first", first, "last", last)

	served := make(chan error, 1)
	go func() { served <- n.http.Serve(netutil.LimitListener(n.listener, maxConns)) }()
	var err error
	select {
	case err = <-served: // never nil, and not closed by us
		err = errors.Join(fmt.Errorf("devnode: %w", err), n.http.Close())
	case <-ctx.Done():
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if late := n.http.Shutdown(stopping); late != nil {
			n.log.WarnContext(ctx, "devnode stops with requests in flight", "waited", stopTimeout, "err", late)
			_ = n.http.Close() // the listener is closed already
		}
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = fmt.Errorf("devnode: %w", end)
		}
	}
	return errors.Join(err, n.Close())
}

// Close releases what New took, for a node that Run is not called on. After Run
// it does nothing.
func (n *Node) Close() error { return n.closing() }

func (n *Node) release() error {
	n.rpc.Stop()
	err := n.chain.close()
	if lerr := n.listener.Close(); lerr != nil && !errors.Is(lerr, net.ErrClosed) {
		err = errors.Join(err, lerr)
	}
	return err
}
