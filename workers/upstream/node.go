package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/bus/codel"
	"github.com/ommer/ommer/schema"
)

// node is one upstream: what is known of it, and the way to its actor.
type node struct {
	name    string
	url     string // has secrets: for dialling only
	cfg     *Config
	terms   terms
	believe bool // what it says is not verified
	chain   *chain
	scrub   scrubber
	log     *slog.Logger
	http    *http.Client // nil for WebSocket
	metrics *nodeMetrics

	health    health
	pace      pace
	latest    atomic.Uint64 // the highest block it has told of, plus one; 0 before
	finalized atomic.Uint64 // likewise the last finalized one
	lacks     lacks
	canon     *canon
	refused   schema.Hash // a head that was not followed, logged once; under canon.mu

	asker   *actor.Ref[mail]
	gate    *codel.Gate   // before waiting
	limiter *rate.Limiter // nil: as many calls as one likes
	waiting atomic.Int64  // lookups that are taken and not yet on their way
	aboard  atomic.Int64  // lookups on their way
	flights atomic.Int32  // round trips under way
	heard   atomic.Int64  // when one of them ended, or began alone: in ns after the epoch
	batch   atomic.Int32  // blocks in one of them
	single  atomic.Bool   // it takes no batches
	hushed  atomic.Bool   // it seems to hang, which was logged
	shut    shutter

	connection
}

func newNode(cfg *Config, raw, name string, preset terms, ch *chain, view *canon) (*node, error) {
	bare, t, err := splitTerms(raw, preset)
	if err != nil {
		return nil, err
	}
	n := &node{
		name: name, url: bare, cfg: cfg, terms: t, believe: cfg.Believe, chain: ch, canon: view, scrub: newScrubber(bare),
		log: cfg.Logger.With("upstream", name),
	}
	n.batch.Store(int32(t.batch))
	if t.rate > 0 {
		n.limiter = rate.NewLimiter(rate.Limit(t.rate), max(callsEach, int(t.rate)))
	}
	if u, err := url.Parse(bare); err == nil && strings.HasPrefix(u.Scheme, "http") {
		n.http = newHTTPClient(t.inFlight, cfg.MaxResponse, n.shut.told)
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.gate = codel.NewGate(n.maxWait, func() int { return int(n.waiting.Load()) })
	return n, nil
}

// maxWait is how long lookups may stand in line. Some round trips of a node that has
// nothing else to do are no overload yet: so long wait many callers for each other's.
func (n *node) maxWait() time.Duration {
	if n.cfg.MaxWait < 0 {
		return n.cfg.MaxWait
	}
	return max(n.cfg.MaxWait, 4*n.pace.best())
}

// ask hands a lookup to the node's actor, which answers it once. An error means that it
// was not taken.
func (n *node) ask(l *lookup) error {
	l.told = time.Now()
	switch left := n.shut.left(l.told); {
	case left > 0:
		return fmt.Errorf("%w: it asked to be left alone for %v more", ErrOverloaded, left.Round(time.Millisecond))
	case n.gate.Closed(l.told):
		return fmt.Errorf("%w: lookups stand in line for it", ErrOverloaded)
	case n.rateWait(l.told) > l.mayWait():
		return fmt.Errorf("%w: it is asked for as much per second as its terms allow", ErrOverloaded)
	case n.waiting.Add(1) > int64(n.cfg.Waiting):
		n.waiting.Add(-1)
		return fmt.Errorf("%w: %d lookups wait for it", ErrOverloaded, n.cfg.Waiting)
	}
	n.health.probe()
	if err := n.asker.Tell(l); err != nil {
		n.waiting.Add(-1)
		return fmt.Errorf("%w: %w", ErrOverloaded, err)
	}
	return nil
}

// rateWait is how long one more lookup would wait since the node's terms allow no more.
func (n *node) rateWait(now time.Time) time.Duration {
	if n.limiter == nil {
		return 0
	}
	lacking := float64(n.waiting.Load()+1)*callsEach - n.limiter.TokensAt(now)
	return time.Duration(max(lacking, 0) / float64(n.limiter.Limit()) * float64(time.Second))
}

// silence is how long a node may keep silent while it is being asked, before it is
// taken to hang: longer than its answers ever take.
func (n *node) silence() time.Duration {
	if slowest, ok := n.pace.slowest(); ok {
		return min(max(4*slowest, leastSilence), n.cfg.CallTimeout)
	}
	return min(2*leastSilence, n.cfg.CallTimeout)
}

const leastSilence = 500 * time.Millisecond

// silent says whether the node seems to hang.
func (n *node) silent(now time.Time) bool {
	return n.flights.Load() > 0 && now.Sub(time.Unix(0, n.heard.Load())) > n.silence()
}

// hedgePause is how long an answer may take before another node is asked as well: longer
// than nearly all of them do.
func (n *node) hedgePause() time.Duration {
	if slowest, ok := n.pace.slowest(); ok {
		return max(slowest, hedgeFloor)
	}
	return leastSilence
}

// cost is what one more lookup would cost there: the time of an answer for each that is
// in hand.
func (n *node) cost(now time.Time) float64 {
	return max(n.pace.cost(now), float64(firstPace)) * float64(n.waiting.Load()+n.aboard.Load()+1) / n.terms.weight
}

// succeeded records that a lookup was answered.
func (n *node) succeeded() {
	n.shut.open()
	n.logUp(n.health.succeeded(time.Now()))
}

// polled records that a question in the background was answered.
func (n *node) polled() {
	n.shut.open()
	n.logUp(n.health.polled(time.Now()))
}

func (n *node) logUp(changed bool, downFor time.Duration) {
	if changed {
		n.log.Info("upstream is up", "chain_id", n.chain.String(), "down_for", downFor.Round(time.Millisecond))
	}
}

// failed records that the node gave no usable answer, unless that is no fault of
// its own. One that has too much to do is left alone for a while.
func (n *node) failed(err error) {
	switch {
	case errors.Is(err, ErrPruned), errors.Is(err, ErrUnknownFields):
		return
	case errors.Is(err, ErrOverloaded):
		if o, ok := errors.AsType[overloaded](err); ok {
			n.shut.wish(time.Now().Add(o.pause))
		}
		if d, first := n.shut.close(time.Now()); first {
			n.log.Warn("upstream is overloaded", "reason", err, "left_alone_for", d)
		}
		return
	}
	if n.health.failed(time.Now(), err) {
		n.log.Warn("upstream is down", "reason", err)
		n.hangUp()
	}
}
