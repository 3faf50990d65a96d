package workers

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/bus/codel"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// Pool is a schema.Resolver over a Source. All methods may be called from any
// goroutine.
type Pool struct {
	cfg    Config
	system *actor.System
	slots  []*slot
	viewer Viewer       // nil: the source is none
	seed   maphash.Seed // which shard has a block is not for strangers to choose
	asks   sync.Pool    // of *ask

	ctx      context.Context // of the fetches
	cancel   context.CancelFunc
	fetches  sync.WaitGroup
	stopping atomic.Bool

	unregister func() // takes the metrics back
}

// slot is a shard's place. It is there before the shard and after its crash.
type slot struct {
	shard   *actor.Ref[message]
	fetches atomic.Int32 // under way, or told and not yet received
	count   counters     // of callers
	warmed  counters     // of Pool.Warm
	gate    *codel.Gate  // before the mailbox

	// The shard tells the metrics with these.
	waiting, entries, bytes, limit atomic.Int64
	full                           atomic.Bool // for Warm
	evicted                        atomic.Uint64
	evictedBefore                  uint64 // by shards that are no more; the shard's own
}

// reserveBeyondFetches are places in a mailbox for wake-ups and the farewell. At most
// two wake-ups are there at a time for each value that a shard has had.
const reserveBeyondFetches = 16

// New starts a Pool. It answers from now on, and Stop or Run ends it.
func New(c Config) (*Pool, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Pool{cfg: cfg, seed: maphash.MakeSeed(), unregister: func() {}}
	p.viewer, _ = cfg.Source.(Viewer)
	p.asks.New = func() any { return new(ask) }
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.system, err = actor.NewSystem(actor.Config{Name: "workers", Logger: cfg.Logger, Registerer: cfg.Registerer})
	if err != nil {
		p.cancel()
		return nil, fmt.Errorf("workers: %w", err)
	}
	if err := p.start(); err != nil {
		_ = p.Stop(context.Background()) // nothing waits yet
		return nil, err
	}
	return p, nil
}

func (p *Pool) start() (err error) {
	for i := range p.cfg.Shards {
		s := new(slot)
		s.gate = codel.NewGate(codel.Always(p.cfg.MaxWait), func() int { return s.shard.Stats().Mailbox })
		s.shard, err = actor.Spawn(p.system, actor.Options{
			Name:     fmt.Sprintf("shard-%d", i),
			Mailbox:  p.cfg.Mailbox,
			Reserved: p.cfg.perShard(p.cfg.MaxFetches) + reserveBeyondFetches,
		}, func(self *actor.Ref[message]) (actor.Actor[message], error) {
			return newShard(p, s, self), nil
		})
		if err != nil {
			return fmt.Errorf("workers: %w", err)
		}
		p.slots = append(p.slots, s)
	}
	p.unregister, err = registerMetrics(p.cfg.Registerer, p.slots)
	return err
}

// Resolve takes a question, see schema.Resolver.
func (p *Pool) Resolve(q schema.Question, deadline time.Time, to schema.Receiver) {
	now := time.Now()
	block, none := p.locate(q.Block, now)
	s := p.slot(block)
	q.Block = block
	switch {
	case p.stopping.Load():
		s.refuse(leaving, to)
		return
	case deadline.IsZero():
		deadline = now.Add(p.cfg.Timeout)
	case !deadline.After(now):
		s.refuse(late, to)
		return
	}
	if q.Block.Number() > math.MaxInt64 { // edges refuse it, and so would nodes
		s.refuse(beyond, to)
		return
	}
	if q.Index >= upstream.MaxUncles { // no block has so many
		s.count.looked(sourceBeyond)
		to.Answered(schema.Answer{Result: schema.Null})
		return
	}
	if none {
		s.count.looked(sourceView)
		to.Answered(schema.Answer{Result: schema.Null})
		return
	}
	if s.gate.Closed(now) {
		s.refuse(standing, to)
		return
	}
	a := p.asks.Get().(*ask)
	a.question, a.told, a.deadline, a.to, a.count = q, now, deadline, to, &s.count
	if err := s.shard.Tell(a); err != nil {
		p.release(a)
		e := mailboxFull
		if p.stopping.Load() {
			e = leaving
		}
		s.refuse(e, to)
	}
}

// slot is the place of the shard that has a block.
func (p *Pool) slot(b schema.Selector) *slot {
	return p.slots[maphash.Comparable(p.seed, b)%uint64(len(p.slots))]
}

// refuse answers a question that no shard has seen.
func (s *slot) refuse(e *schema.Error, to schema.Receiver) {
	s.count.failed(e.Code)
	to.Answered(schema.Answer{Err: e})
}

// release gives an ask back. Nobody may hold it any more.
func (p *Pool) release(a *ask) {
	*a = ask{}
	p.asks.Put(a)
}

// Ready returns nil when a question would be answered, else what is missing.
func (p *Pool) Ready() error {
	if p.stopping.Load() {
		return leaving
	}
	return p.cfg.Source.Ready()
}

// Actors are the shards, for the operator's page.
func (p *Pool) Actors() *actor.System { return p.system }

// Run blocks until ctx ends, then stops the Pool within Config.StopTimeout.
func (p *Pool) Run(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.StopTimeout)
	defer cancel()
	return p.Stop(ctx)
}

// Stop ends the Pool. Who asks from now on is told Draining at once; who waits for the
// source is still answered, and told Draining when ctx ends before. When Stop returns,
// everyone has been answered and no goroutine is left. The Source must be there until
// then. Further calls do the same and find nothing left to do.
//
// It returns nil, or what the actors' Stop says about messages that were discarded.
func (p *Pool) Stop(ctx context.Context) error {
	p.stopping.Store(true)
	var farewells []*farewell
	for _, s := range p.slots {
		f := &farewell{done: make(chan struct{})}
		if s.shard.TellReserved(f) == nil {
			farewells = append(farewells, f)
		}
	}
	for _, f := range farewells {
		select {
		case <-f.done:
		case <-ctx.Done():
		}
	}
	err := p.system.Stop(ctx)
	p.cancel()
	p.fetches.Wait()
	p.unregister()
	if err != nil {
		return fmt.Errorf("workers: %w", err)
	}
	return nil
}
