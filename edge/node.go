package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/edge/http1"
	"github.com/ommer/ommer/edge/nio"
	"github.com/ommer/ommer/edge/overload"
	"github.com/ommer/ommer/edge/ws"
)

// Node is one edge: its listeners and the sessions of their connections.
type Node struct {
	node
	https, http net.Addr
}

// node is what sessions see of a Node.
type node struct {
	cfg      Config
	app      application
	log      *slog.Logger
	metrics  *metrics
	networks networks
	pool     *actor.Pool
	loop     *nio.Loop
	httpPool *http1.Pool
	wsPool   *ws.Pool
	overload *overload.Monitor
	date     http1.Date
	shares   shares

	open     atomic.Int64  // sessions
	held     atomic.Int64  // bytes of their partial messages
	stopping atomic.Bool   // sessions are to leave, those that speak HTTP after an answer
	parting  atomic.Bool   // these too are to leave when they are idle
	idle     chan struct{} // poked when stopping and no session is left
}

// New binds the listeners of a node that serves JSON-RPC, except with
// Config.ReusePort. Connections are served once Run is called.
func New(cfg Config) (*Node, error) {
	if cfg.Keys == nil || cfg.Resolver == nil || slices.ContainsFunc(cfg.Others, func(n Network) bool { return n.Resolver == nil }) {
		return nil, errors.New("edge: Keys and each Resolver must be set")
	}
	return newNode(cfg, service{})
}

func newNode(cfg Config, app application) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	networks, err := newNetworks(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Limits = cfg.Limits.ofMemory(cfg.Overload.Budget())
	l, t := cfg.Limits, cfg.Timeouts
	loop, err := nio.New(nio.Config{
		Logger: cfg.Logger, Registerer: cfg.Registerer,
		MaxConns: l.Conns, MaxConnsPerAddr: l.ConnsPerAddr,
		Handshakes: l.Handshakes, HandshakesPerAddr: l.HandshakesPerAddr, HandshakeTimeout: t.Handshake,
		HandshakeQueue: l.HandshakeQueue, MaxUnwritten: l.Unwritten, MaxUnwrittenTotal: l.UnwrittenTotal,
		ReusePort: cfg.ReusePort,
	})
	if err != nil {
		return nil, err
	}
	conns, ofOne := loop.MaxConns()
	if cfg.Limits.ConnsPerKey == 0 {
		cfg.Limits.ConnsPerKey = max(conns/2, 1)
	}
	n := &Node{node: node{
		cfg: cfg, app: app, log: cfg.Logger, metrics: newMetrics(cfg.Registerer, networks.list), networks: networks,
		pool: actor.NewPool(0), loop: loop, httpPool: http1.NewPool(http1.Limits{Body: l.Body}),
		wsPool: ws.NewPool(ws.Limits{Message: l.Message}),
		idle:   make(chan struct{}, 1),
	}}
	n.date.Set(time.Now())
	if n.overload, err = n.newMonitor(); err != nil {
		n.Close()
		return nil, err
	}
	n.shares.init(l.InFlightTotal, 0 <= ofOne && ofOne < conns) // else they are those of a balancer
	if cfg.ReusePort {
		return n, nil
	}
	if err := n.Listen(); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Listen binds the listeners of a Node with Config.ReusePort, for which New does
// not: from here on it gets its share of the connections. It is called once, before
// Run.
func (n *Node) Listen() (err error) {
	if n.https, err = n.listen("--https", n.cfg.HTTPS, n.cfg.TLS); err == nil {
		n.http, err = n.listen("--http", n.cfg.HTTP, nil)
	}
	return err
}

// Close gives up a Node that Run will not be called for.
func (n *Node) Close() {
	n.pool.Close()
	_ = n.loop.Close(context.Background())
}

func (n *Node) listen(flag, addr string, config *tls.Config) (net.Addr, error) {
	if addr == "" {
		return nil, nil //nolint:nilnil // no listener is a valid choice
	}
	bound, err := n.loop.Listen(addr, config, n.accept)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return bound, nil
}

// HTTPS is where HTTPS and WSS are served, nil when they are not.
func (n *Node) HTTPS() net.Addr { return n.https }

// HTTP is where they are served without TLS, nil when they are not.
func (n *Node) HTTP() net.Addr { return n.http }

// Run serves until ctx ends. Then it accepts no more, lets every connection
// finish what it has asked for, closes each (WebSockets with 1001, spread over
// the first half of the drain time) and returns; what is left after the drain
// time is cut off. With Config.ReusePort an HTTP connection that is idle has that
// first half for one more request, whose answer says Connection: close: a client
// cannot know whether a request that met the end of its connection was served.
func (n *Node) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- n.loop.Run(context.WithoutCancel(ctx)) }()
	select {
	case <-n.loop.Started(): // a stop before would leave nobody to answer what waits
	case err := <-ended:
		n.pool.Close()
		return fmt.Errorf("edge: event loop did not start: %w", err)
	}

	defer n.watch(ctx)()
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	for running := true; running; {
		select {
		case now := <-clock.C:
			n.date.Set(now)
			n.closeIdle()
		case err := <-ended:
			n.pool.Close()
			return fmt.Errorf("edge: event loop ended: %w", err)
		case <-ctx.Done():
			running = false
		}
	}
	n.drain(context.WithoutCancel(ctx))
	err := <-ended
	n.pool.Close()
	return err
}

// drain asks every session to leave, waits for them and closes the loop.
func (n *Node) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeouts.Drain)
	defer cancel()
	grace, end := context.WithTimeout(ctx, n.cfg.Timeouts.Drain/2)
	defer end()
	n.stopping.Store(true)
	n.parting.Store(!n.cfg.ReusePort)
	n.loop.StopAccepting()

	var leaving []*session
	n.loop.Each(func(c *nio.Conn) { leaving = append(leaving, c.Handler().(*session)) })
	const steps = 50
	tick := time.NewTicker(max(n.cfg.Timeouts.Drain/2/steps, time.Millisecond))
	defer tick.Stop()
	atOnce := max((len(leaving)+steps-1)/steps, 16) // a few leave without a wait
	for len(leaving) > 0 && ctx.Err() == nil {
		some := leaving[:min(atOnce, len(leaving))]
		for _, s := range some {
			s.signal(sigLeave)
		}
		if leaving = leaving[len(some):]; len(leaving) > 0 {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
	if n.cfg.ReusePort {
		n.loop.AwaitHandshakes(grace)
		n.await(grace)
		n.parting.Store(true)
		n.loop.Each(func(c *nio.Conn) { c.Handler().(*session).signal(sigLeave) })
	}
	if !n.await(ctx) {
		n.log.Warn("connections cut off at the end of the drain time", "open", n.open.Load())
	}
	_ = n.loop.Close(ctx) // its error says that connections were cut, as above
}

// await waits until no session is left, false when ctx ended first.
func (n *Node) await(ctx context.Context) bool {
	for n.open.Load() > 0 {
		select {
		case <-n.idle:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// accept makes the session of a new connection.
func (n *node) accept(c *nio.Conn) nio.Handler {
	n.open.Add(1)
	s := &session{node: n, conn: c, leaving: n.stopping.Load(), slot: n.shares.slot(c.RemoteAddr().Addr())}
	s.setTimer(false)
	return s
}

// forget is called by each session once, at its end.
func (n *node) forget() {
	if n.open.Add(-1) == 0 && n.stopping.Load() {
		select {
		case n.idle <- struct{}{}:
		default:
		}
	}
}

// KeysChanged closes the WebSockets of keys that are no longer good, or no longer
// good for them. It is to be called when a key has changed, after its Entry says so.
func (n *Node) KeysChanged() {
	n.loop.Each(func(c *nio.Conn) { c.Handler().(*session).signal(sigKey) })
}
