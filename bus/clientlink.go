package bus

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/ommer/ommer/schema"
)

// confirmTimeout is how long a server may take to answer a PING while questions
// are on their way, before its link is taken for dead.
const confirmTimeout = 2 * time.Second

// clientLink is a Link as the client uses it.
type clientLink struct {
	*Link
	number   uint8
	prefix   string               // of its reply subjects
	wake     chan struct{}        // of its publisher
	messages atomic.Uint64        // that questions were published in
	risen    atomic.Int64         // when it was last connected, ns since the client's start
	heard    atomic.Int64         // when something last came over it, ns since the client's start
	cut      int64                // when it was last taken for mute; the watcher's own
	lame     atomic.Bool          // its server is about to stop: no new questions
	ducks    chan struct{}        // tells of it
	subs     []*nats.Subscription // the first is that of the answers
	gone     sync.WaitGroup       // of the subscriptions
	check    chan struct{}        // asks for a confirmation
	unwatch  func()

	mu    sync.Mutex
	full  []*lane // those with something to publish
	lanes []*lane // all; a new slice after each change
}

func (c *Client) newLink(number int, l *Link) *clientLink {
	return &clientLink{
		Link: l, number: uint8(number), prefix: "_R." + l.name + "." + randomToken() + ".",
		wake: make(chan struct{}, 1), check: make(chan struct{}, 1), ducks: make(chan struct{}, 1), cut: -int64(cutAgain),
	}
}

// open subscribes to the link's replies and to what workers announce, and follows its
// state.
func (c *Client) open(l *clientLink, pending int) error {
	// Answers to all pending questions fit at 4 KiB each, twice what they take.
	if err := l.subscribe(l.prefix+"*", max(pending*4096, 64<<20), func(m *nats.Msg) { c.receive(l, m) }); err != nil {
		return err
	}
	if err := l.subscribe(loadSubjects, maxPeers*maxLoad, func(m *nats.Msg) {
		l.heard.Store(c.now())
		c.fleet.heard(l, m)
	}); err != nil {
		return err
	}
	l.unwatch = l.Watch(func(up bool) {
		if !up {
			for _, ln := range l.all() {
				ln.lost()
			}
		} else {
			l.heard.Store(c.now())
			l.risen.Store(c.now())
			c.fleet.risen(l)
			l.lame.Store(false)
		}
		for _, s := range c.shards {
			if up {
				s.linkUp(c.now())
			} else {
				s.linkDown(l, c.now())
			}
		}
	})
	l.OnLameDuck(func() {
		select {
		case l.ducks <- struct{}{}:
		default: // it is known
		}
	})
	c.wg.Go(func() { c.evade(l) })
	c.wg.Go(func() { c.confirm(l) })
	c.wg.Go(func() { c.publish(l) })
	return nil
}

func (l *clientLink) subscribe(subject string, bytes int, f nats.MsgHandler) error {
	sub, err := l.nc.Subscribe(subject, f)
	if err != nil {
		return err
	}
	l.gone.Add(1)
	sub.SetClosedHandler(func(string) { l.gone.Done() })
	l.subs = append(l.subs, sub)
	return sub.SetPendingLimits(-1, bytes)
}

// close ends what open began, but for what c.wg waits for.
func (l *clientLink) close() {
	if l.unwatch != nil {
		l.unwatch()
	}
	for _, sub := range l.subs {
		_ = sub.Unsubscribe() // an error means that the connection is closed, and it with it
	}
}

// join adds the lanes of a peer.
func (l *clientLink) join(lanes methodLanes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lanes = slices.Clip(l.lanes)
	for _, m := range schema.Methods {
		l.lanes = append(l.lanes, lanes[m])
	}
}

// part takes the lanes of a peer out.
func (l *clientLink) part(lanes methodLanes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lanes = slices.DeleteFunc(slices.Clone(l.lanes), func(ln *lane) bool { return slices.Contains(lanes[:], ln) })
}

func (l *clientLink) all() []*lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lanes
}

// named returns the lane whose reply subject ends in a token.
func (l *clientLink) named(token string) *lane {
	for _, ln := range l.all() {
		if ln.token == token {
			return ln
		}
	}
	return nil
}

// takes says whether questions can be sent over the link.
func (l *clientLink) takes() bool { return l.Up() && !l.lame.Load() }

// publishSoon has what waits in a lane published.
func (l *clientLink) publishSoon(ln *lane) {
	l.mu.Lock()
	l.full = append(l.full, ln)
	first := len(l.full) == 1
	l.mu.Unlock()
	if !first {
		return
	}
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
	var full []*lane
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-l.wake:
		}
		l.mu.Lock()
		full, l.full = l.full, full[:0]
		l.mu.Unlock()
		for k, ln := range full {
			full[k] = nil
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

// stale says whether the link has not confirmed what it was sent a tick ago.
func (l *clientLink) stale() bool {
	stale := false
	for _, ln := range l.all() {
		stale = ln.stale() || stale // each has to be looked at
	}
	return stale
}

// confirm asks the link's server with a PING what it has routed, each time that the
// clock found something sent a while ago and not heard of since. A server that does
// not answer is left for another.
func (c *Client) confirm(l *clientLink) {
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-l.check:
		}
		if !l.Up() {
			continue
		}
		lanes := l.all()
		marks := make([]uint64, len(lanes))
		for i, ln := range lanes {
			marks[i] = ln.mark()
		}
		ctx, cancel := context.WithTimeout(c.ctx, confirmTimeout)
		err := l.nc.FlushWithContext(ctx)
		cancel()
		switch {
		case c.ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			c.log.Warn("bus server is silent, reconnecting", "link", l.name, "after", confirmTimeout)
			l.renew()
		case err == nil:
			c.settle(l, lanes, marks)
		}
	}
}

// settle notes the marks once every 503 that came before the PONG has been taken.
func (c *Client) settle(l *clientLink, lanes []*lane, marks []uint64) {
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
	for i, ln := range lanes {
		ln.confirm(marks[i])
	}
}

// cutAgain is the least time between two cuts of a link: a new connection needs a
// moment to hear something.
const cutAgain = 2 * time.Second

// lookAtLinks gives up a link that is connected and over which nothing comes, while
// the workers are heard over another: its server hangs.
func (c *Client) lookAtLinks(now int64) {
	heard := int64(0)
	for _, l := range c.links {
		if l.Up() {
			heard = max(heard, l.heard.Load())
		}
	}
	if now-heard > int64(2*LoadInterval) {
		return // over none of them: nobody announces anything
	}
	for _, l := range c.links {
		if l.Up() && now-l.heard.Load() > int64(silence) && now-l.cut > int64(cutAgain) {
			l.cut = now
			c.log.Warn("bus server is silent, reconnecting", "link", l.name, "after", silence)
			l.renew()
		}
	}
}

// evadeTimeout is how long answers are waited for over a link whose server is about to
// stop; who has none by then is asked again.
const evadeTimeout = 2 * time.Second

// evade leaves a server that is about to stop: asks over other links, takes the answers
// that are still to come, and then connects elsewhere. With no other link there is
// nothing to gain: the server closes the connection when it stops.
func (c *Client) evade(l *clientLink) {
	t := time.NewTicker(2 * tick)
	defer t.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-l.ducks:
		}
		if !slices.ContainsFunc(c.links, func(o *clientLink) bool { return o != l && o.takes() }) {
			continue
		}
		l.lame.Store(true)
		losses := l.losses.Load()
		for end := c.now() + int64(evadeTimeout); c.now() < end && c.waits(l); {
			select {
			case <-c.ctx.Done():
				return
			case <-t.C:
			}
		}
		if l.losses.Load() == losses { // else another client of the link has left already
			l.renew()
		}
	}
}

// waits says whether answers are to come over a link.
func (c *Client) waits(l *clientLink) bool {
	return slices.ContainsFunc(c.shards, func(s *shard) bool { return s.waits(l) })
}
