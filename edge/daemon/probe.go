package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/schema"
)

var errNotProbed = errors.New("no lookup has been tried yet")

// How often a trial lookup is made, and how long it may take.
const (
	probeUnready = 250 * time.Millisecond
	probeReady   = time.Second
	probeTimeout = 2 * time.Second
	// probeFailures is how many fail in a row before an edge that was ready no longer
	// is: one worker of several that hangs must not take all edges out of a balancer. As
	// many say that nobody answers for a network yet.
	probeFailures = 3
)

// probe finds out again and again whether lookups of a network are answered.
type probe struct {
	client *bus.Client
	links  []*bus.Link

	last     atomic.Pointer[error] // what came of the last trial lookup, nil when it was answered
	answered atomic.Bool           // one was, sometime
	tried    atomic.Bool           // as often as makes a failure sure, or answered
}

func newProbe(client *bus.Client, links []*bus.Link) *probe {
	p := &probe{client: client, links: links}
	p.last.Store(&errNotProbed)
	return p
}

// ready is nil when lookups are answered.
func (p *probe) ready() error { return *p.last.Load() }

// run asks for an uncle of the latest block until ctx ends: lookups are answered when
// that is, whatever the answer. Workers that have an archive and no node answer that they
// do not have the block. It calls tell after each trial.
func (p *probe) run(ctx context.Context, tell func()) {
	question := schema.Question{Block: schema.Tagged(schema.Latest)}
	for failed := 0; ; {
		answered := make(chan schema.Answer, 1)
		p.client.Resolve(question, time.Now().Add(probeTimeout),
			schema.ReceiverFunc(func(a schema.Answer) { answered <- a }))
		var err error
		pause := probeReady
		if a := <-answered; a.Err != nil && a.Err.Code != schema.Pruned { // always comes: by the deadline at the latest
			err, pause = fmt.Errorf("a trial lookup failed: %w", a.Err), probeUnready
			for _, l := range p.links {
				if refused := l.Refused(); refused != "" {
					err = fmt.Errorf("%w; %s", err, refused)
					break
				}
			}
			failed++
		} else {
			failed = 0
		}
		if err == nil || !p.answered.Load() || failed >= probeFailures {
			p.last.Store(&err)
		}
		if err == nil {
			p.answered.Store(true)
		}
		if err == nil || failed >= probeFailures {
			p.tried.Store(true)
		}
		tell()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}
