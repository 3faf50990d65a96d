package bus

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/prometheus/client_golang/prometheus"
)

// Defaults and bounds of ClientConfig.
const (
	DefaultMaxPending = 65536
	DefaultTimeout    = 10 * time.Second
	DefaultShards     = 16

	maxShards  = 16
	maxLinks   = 8
	maxPending = 1 << 24
	maxTimeout = time.Hour
)

// ClientConfig says how a Client asks.
type ClientConfig struct {
	// Links are the connections to ask over, 1 to 8, and a lost one's questions go
	// over another. For each four processors one is asked over at a time: few links
	// make full messages. They stay open when the Client closes, and may be those of
	// clients for other networks too.
	Links []*Link
	// Network is the token that names the chain in subjects, such as "mainnet".
	Network string
	// Zone is where the client is. While there are workers that announce the same one
	// only they are asked.
	Zone string
	// MaxPending is how many questions may be unanswered at once; one more is
	// answered with Overloaded. An ask takes about 150 bytes. The default 0 means
	// DefaultMaxPending.
	MaxPending int
	// Timeout is the deadline of a question that came with none. 0 means
	// DefaultTimeout.
	Timeout time.Duration
	// Shards is how many mutexes the table of asks has, 1 to 16. 0 means
	// DefaultShards.
	Shards int
	// Logger gets what an operator should know. Nil logs nothing.
	Logger *slog.Logger
	// Registerer takes the metrics. Nil means none.
	Registerer prometheus.Registerer
}

// Client asks the workers of one network. It implements schema.Resolver.
type Client struct {
	network    string
	zone       string
	links      []*clientLink
	active     uint32 // how many of them are used while all are up
	laneLimit  int
	fleet      *fleet
	shards     []*shard
	timeout    int64
	start      time.Time
	log        *slog.Logger
	unreadable atomic.Uint64
	hedgeAfter atomic.Int64        // ns
	seconds    [buckets + 1]uint64 // as it was measured last; the watcher's own

	closed     atomic.Bool
	asleep     atomic.Bool // the clock waits for rouse
	rouse      chan struct{}
	ctx        context.Context // done when the client closes
	cancel     context.CancelFunc
	wg         sync.WaitGroup
	unregister func()
}

var _ schema.Resolver = (*Client)(nil)

// NewClient starts a client. It needs no connection to start: questions wait up to
// two seconds for one. Close ends it.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.MaxPending == 0 {
		cfg.MaxPending = DefaultMaxPending
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Shards == 0 {
		cfg.Shards = DefaultShards
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Client{
		network:    cfg.Network,
		zone:       cfg.Zone,
		laneLimit:  roundUp(cfg.MaxPending),
		timeout:    int64(cfg.Timeout),
		start:      time.Now(),
		log:        cfg.Logger,
		rouse:      make(chan struct{}, 1),
		unregister: func() {},
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.hedgeAfter.Store(int64(hedgeFloor))
	for i, l := range cfg.Links {
		c.links = append(c.links, c.newLink(i, l))
	}
	c.fleet = newFleet(c)
	c.active = uint32(max(1, min(len(c.links), runtime.GOMAXPROCS(0)/4)))
	c.makeShards(cfg.Shards, cfg.MaxPending)
	for _, l := range c.links {
		if err := c.open(l, cfg.MaxPending); err != nil {
			c.Close()
			return nil, fmt.Errorf("bus client: %w", err)
		}
	}
	c.wg.Go(c.clock)
	c.wg.Go(c.fleet.watch)
	if cfg.Registerer != nil {
		m := newClientMetrics(c)
		if err := cfg.Registerer.Register(m); err != nil {
			c.Close()
			return nil, fmt.Errorf("bus client: metrics: %w", err)
		}
		c.unregister = func() { cfg.Registerer.Unregister(m) }
	}
	return c, nil
}

func (cfg ClientConfig) validate() error {
	if len(cfg.Links) == 0 || len(cfg.Links) > maxLinks {
		return fmt.Errorf("%w: Links must be 1 to %d", ErrConfig, maxLinks)
	}
	if cfg.MaxPending < 1 || cfg.MaxPending > maxPending {
		return fmt.Errorf("%w: MaxPending must be 1 to %d", ErrConfig, maxPending)
	}
	if cfg.Timeout < time.Millisecond || cfg.Timeout > maxTimeout {
		return fmt.Errorf("%w: Timeout must be 1 ms to %v", ErrConfig, maxTimeout)
	}
	if cfg.Shards < 1 || cfg.Shards > maxShards {
		return fmt.Errorf("%w: Shards must be 1 to %d", ErrConfig, maxShards)
	}
	if cfg.Zone != "" {
		if err := checkToken("Zone", cfg.Zone); err != nil {
			return err
		}
	}
	return checkToken("Network", cfg.Network)
}

func (c *Client) makeShards(n, pending int) {
	n = min(n, pending)
	for i := range n {
		s := &shard{c: c, number: uint32(i), credit: hedgeCredit}
		s.table = table{limit: pending / n, free: none}
		if i < pending%n {
			s.table.limit++
		}
		s.wheel.init()
		c.shards = append(c.shards, s)
	}
}

// Missing says in words what keeps the client from asking, and nothing when it is
// ready: with one of its links up it is.
func (c *Client) Missing() string {
	if c.closed.Load() {
		return "the bus client has closed"
	}
	var missing []string
	for _, l := range c.links {
		m := l.Missing()
		if m == "" {
			return ""
		}
		missing = append(missing, m)
	}
	return strings.Join(missing, "; ")
}

// Pending is the number of questions not yet answered.
func (c *Client) Pending() int {
	n := 0
	for _, s := range c.shards {
		n += s.pending()
	}
	return n
}

// Resolve asks the workers. Answers that the client itself gives: Timeout at the
// deadline and up to two ticks of 5 ms later; NoWorkers after four more attempts,
// 75 to 150 ms (for half a second more when the link has just come up), or when no
// link has been up for two seconds; Overloaded at once
// when MaxPending questions are unanswered; Draining after Close.
func (c *Client) Resolve(q schema.Question, deadline time.Time, to schema.Receiver) {
	now := c.now()
	due := now + c.timeout
	if !deadline.IsZero() {
		due = int64(deadline.Sub(c.start))
	}
	if due <= now {
		c.refuse(errTimeout, to)
		return
	}
	n := uint32(len(c.shards))
	first := rand.Uint32N(n)
	for k := range n {
		if c.shards[(first+k)%n].add(q, now, due, to) {
			if c.asleep.Load() && c.asleep.CompareAndSwap(true, false) {
				c.rouse <- struct{}{}
			}
			return
		}
	}
	if c.closed.Load() {
		c.refuse(errClosed, to)
	} else {
		c.refuse(errOverloaded, to)
	}
}

func (c *Client) refuse(e *schema.Error, to schema.Receiver) {
	a := schema.Answer{Err: e}
	c.shards[0].refuse(a)
	to.Answered(a)
}

// Close answers what is pending with Draining, and waits until no Answered is
// running or will be called. Who wants answers waits for Pending to reach 0 first.
func (c *Client) Close() {
	if c.closed.Swap(true) {
		c.wg.Wait()
		return
	}
	c.cancel()
	for _, l := range c.links {
		l.close()
	}
	var out []verdict
	for _, s := range c.shards {
		out = s.shut(c.now(), out)
	}
	deliver(out)
	for _, l := range c.links {
		l.gone.Wait()
	}
	c.wg.Wait()
	c.unregister()
}

func (c *Client) now() int64 { return int64(time.Since(c.start)) }

// patience is how long questions still wait for a link, 0 when there has been none
// for the length of outage.
func (c *Client) patience() time.Duration {
	now := time.Now()
	left := time.Duration(0)
	for _, l := range c.links {
		left = max(left, outage-l.downFor(now))
	}
	return left
}

// clock runs deadlines and pauses. It sleeps while nothing is pending.
func (c *Client) clock() {
	t := time.NewTicker(tick)
	defer t.Stop()
	var out []verdict
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-t.C:
		}
		busy := false
		for _, s := range c.shards {
			out = s.elapse(c.now(), out[:0])
			deliver(out)
			busy = busy || s.pending() > 0
		}
		for _, l := range c.links {
			if l.stale() {
				select {
				case l.check <- struct{}{}:
				default: // one is under way
				}
			}
		}
		if busy {
			continue
		}
		// Resolve looks at asleep after it has added; this looks at the shards
		// after it has set asleep: one of the two sees the other.
		c.asleep.Store(true)
		if c.Pending() > 0 && c.asleep.CompareAndSwap(true, false) {
			continue
		}
		t.Stop()
		select {
		case <-c.ctx.Done():
			return
		case <-c.rouse:
		}
		t.Reset(tick)
	}
}

func deliver(out []verdict) {
	for i := range out {
		out[i].to.Answered(out[i].answer)
		out[i] = verdict{} // keep no receiver alive
	}
}

// rescue asks again what a worker has, which may have lost it: what was sent over one
// link, or over any. not is the worker that is not to be asked, if any.
func (c *Client) rescue(p *peer, over *clientLink, not *peer) {
	if p.asked.Load() == 0 {
		return
	}
	for _, s := range c.shards {
		s.rescue(p, over, not, c.now())
	}
}
