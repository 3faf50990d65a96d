package bus

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
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

// confirmTimeout is how long a server may take to answer a PING while questions
// are on their way, before its link is taken for dead.
const confirmTimeout = 2 * time.Second

// ClientConfig says how a Client asks.
type ClientConfig struct {
	// Links are the connections to ask over, 1 to 8, and a lost one's questions go
	// over another. For each four processors one is asked over at a time: few links
	// make full messages. They stay open when the Client closes.
	Links []*Link
	// Network is the token that names the chain in subjects, such as "mainnet".
	Network string
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
	links      []*clientLink
	active     uint32 // how many of them are used while all are up
	shards     []*shard
	timeout    int64
	start      time.Time
	log        *slog.Logger
	unreadable atomic.Uint64

	closed     atomic.Bool
	asleep     atomic.Bool // the clock waits for rouse
	rouse      chan struct{}
	ctx        context.Context // done when the client closes
	cancel     context.CancelFunc
	wg         sync.WaitGroup
	unregister func()
}

// clientLink is a Link as the client uses it.
type clientLink struct {
	*Link
	number   uint8
	prefix   string                         // of its reply subjects
	lanes    [len(schema.Methods) + 1]*lane // by method
	wake     chan struct{}                  // of its publisher
	messages atomic.Uint64                  // that questions were published in
	sub      *nats.Subscription
	subGone  chan struct{}
	check    chan struct{} // asks for a confirmation
	unwatch  func()
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
	for i, l := range cfg.Links {
		cl := &clientLink{
			Link:    l,
			number:  uint8(i),
			prefix:  "_R." + l.name + "." + randomToken() + ".",
			wake:    make(chan struct{}, 1),
			subGone: make(chan struct{}),
			check:   make(chan struct{}, 1),
		}
		for _, m := range schema.Methods {
			cl.lanes[m] = &lane{
				link: cl, subject: questionSubject(cfg.Network, m), reply: cl.prefix + m.String(),
				limit: roundUp(cfg.MaxPending),
			}
		}
		c.links = append(c.links, cl)
	}
	c.active = uint32(max(1, min(len(c.links), runtime.GOMAXPROCS(0)/4)))
	c.makeShards(cfg.Shards, cfg.MaxPending)
	for _, l := range c.links {
		if err := c.open(l, cfg.MaxPending); err != nil {
			c.Close()
			return nil, err
		}
	}
	c.wg.Go(c.clock)
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
	return checkToken("Network", cfg.Network)
}

func (c *Client) makeShards(n, pending int) {
	n = min(n, pending)
	for i := range n {
		s := &shard{c: c, number: uint32(i)}
		s.table = table{limit: pending / n, free: none, seed: rand.Uint32()}
		if i < pending%n {
			s.table.limit++
		}
		s.wheel.init()
		c.shards = append(c.shards, s)
	}
}

// open subscribes to the link's replies and follows its state.
func (c *Client) open(l *clientLink, pending int) error {
	sub, err := l.nc.Subscribe(l.prefix+"*", func(m *nats.Msg) { c.receive(l, m) })
	if err != nil {
		close(l.subGone)
		return fmt.Errorf("bus client: %w", err)
	}
	l.sub = sub
	sub.SetClosedHandler(func(string) { close(l.subGone) })
	// Answers to all pending questions fit at 4 KiB each, twice what they take.
	if err := sub.SetPendingLimits(-1, max(pending*4096, 64<<20)); err != nil {
		return fmt.Errorf("bus client: %w", err)
	}
	l.unwatch = l.Watch(func(up bool) {
		if !up {
			for _, m := range schema.Methods {
				l.lanes[m].lost()
			}
		}
		for _, s := range c.shards {
			if up {
				s.linkUp(c.now())
			} else {
				s.linkDown(l, c.now())
			}
		}
	})
	c.wg.Go(func() { c.confirm(l) })
	c.wg.Go(func() { c.publish(l) })
	return nil
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
		if l.unwatch != nil {
			l.unwatch()
		}
		if l.sub != nil {
			// An error means that the connection is closed, and the subscription
			// with it.
			_ = l.sub.Unsubscribe()
		}
	}
	var out []verdict
	for _, s := range c.shards {
		out = s.shut(c.now(), out)
	}
	deliver(out)
	for _, l := range c.links {
		if l.sub != nil {
			<-l.subGone
		}
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

// receive runs on the goroutine of the link's reply subscription.
func (c *Client) receive(l *clientLink, m *nats.Msg) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		c.missed(l, m)
		return
	}
	now := c.now()
	alone := !schema.IsBundle(m.Data)
	for frame := range schema.Frames(m.Data) {
		id, answer, err := schema.ParseReply(frame)
		if err != nil {
			c.unreadable.Add(1)
			continue
		}
		// Handing one answer on to another goroutine costs more than what is to be
		// made of it. Several are divided among those who are free.
		answer.Unhurried = alone
		s, i := c.slot(id)
		if v, ok := s.answered(i, uint32(id>>32), l, answer, now); ok {
			v.to.Answered(v.answer)
		}
	}
}

// slot finds the place that an id names; whether it is still in use the shard
// decides.
func (c *Client) slot(id uint64) (*shard, int32) {
	n := uint32(len(c.shards))
	return c.shards[uint32(id)%n], int32(uint32(id) / n)
}

// missed takes a 503: the server had nobody to deliver a question to.
func (c *Client) missed(l *clientLink, m *nats.Msg) {
	token := m.Subject[len(l.prefix):]
	if exact, ok := strings.CutPrefix(token, "x"); ok {
		raw, err := hex.DecodeString(exact)
		if err != nil || len(raw) != 8 {
			return
		}
		id := binary.BigEndian.Uint64(raw)
		s, i := c.slot(id)
		if v, ok := s.missedExactly(i, uint32(id>>32), l, c.now()); ok {
			v.to.Answered(v.answer)
		}
		return
	}
	method, ok := schema.MethodNamed([]byte(token))
	if !ok {
		return
	}
	ln := l.lanes[method]
	for _, at := range ln.blame() {
		c.shards[at.index%uint32(len(c.shards))].missedAt(l, at, c.now())
		ln.confirm(at.seq)
	}
}

// publishSoon wakes the link's publisher.
func (l *clientLink) publishSoon() {
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// publish sends what comes together over the link. It is woken by the first question
// and takes all that are there when it runs: as many as an event loop finds in one
// turn leave in few messages.
func (c *Client) publish(l *clientLink) {
	var out []*schema.Bundle
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-l.wake:
		}
		for _, m := range schema.Methods {
			ln := l.lanes[m]
			if out = ln.take(out); len(out) == 0 {
				continue
			}
			l.messages.Add(uint64(len(out)))
			for i, b := range out {
				if l.nc.PublishRequest(ln.subject, ln.reply, b.Message()) != nil {
					c.unsent(l, b)
				}
				b.Reset(maxBundle * 2 * schema.MaxRequestFrame)
				bundles.Put(b)
				out[i] = nil
			}
			ln.done()
		}
	}
}

// unsent sends the questions of a message over another link: this one was lost a
// moment ago, and its watcher has said so before they came, or will.
func (c *Client) unsent(l *clientLink, b *schema.Bundle) {
	for frame := range schema.Frames(b.Message()) {
		if id, ok := schema.RequestID(frame); ok {
			s, i := c.slot(id)
			s.unsent(l, i, uint32(id>>32), c.now())
		}
	}
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

// stale says whether the link has not confirmed what it was sent a tick ago.
func (l *clientLink) stale() bool {
	stale := false
	for _, m := range schema.Methods {
		stale = l.lanes[m].stale() || stale // each has to be looked at
	}
	return stale
}

// confirm asks the link's server with a PING what it has routed, each time that the
// clock found something sent a while ago and not heard of since. A server that does
// not answer is left for another.
func (c *Client) confirm(l *clientLink) {
	var marks [len(schema.Methods) + 1]uint64
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-l.check:
		}
		if !l.Up() {
			continue
		}
		for _, m := range schema.Methods {
			marks[m] = l.lanes[m].mark()
		}
		ctx, cancel := context.WithTimeout(c.ctx, confirmTimeout)
		err := l.nc.FlushWithContext(ctx)
		cancel()
		switch {
		case c.ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			c.log.Warn("bus server is silent, reconnecting", "link", l.name, "after", confirmTimeout)
			// An error means that the connection was closed for good.
			_ = l.nc.ForceReconnect()
		case err == nil:
			c.settle(l, marks)
		}
	}
}

// settle notes the marks once every 503 that came before the PONG has been taken.
func (c *Client) settle(l *clientLink, marks [len(schema.Methods) + 1]uint64) {
	done := make(chan struct{})
	if l.nc.Barrier(func() { close(done) }) != nil {
		return
	}
	// It waits for every subscription of the link, also for those of others.
	limit := time.NewTimer(confirmTimeout)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		return
	case <-c.ctx.Done():
		return
	}
	for _, m := range schema.Methods {
		l.lanes[m].confirm(marks[m])
	}
}

func deliver(out []verdict) {
	for i := range out {
		out[i].to.Answered(out[i].answer)
		out[i] = verdict{} // keep no receiver alive
	}
}
