package actor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Config are the settings of a System. The zero value is usable.
type Config struct {
	// Name is shown in metrics and Info. Default: actors.
	Name string
	// Logger gets a line for each crash. Default: none.
	Logger *slog.Logger
	// Registerer takes the metrics until Stop. Default: none.
	Registerer prometheus.Registerer
	// Runners is the number of goroutines that run the actors. Default:
	// GOMAXPROCS.
	Runners int
}

// System is a set of actors and the pool that runs them. All methods may be
// called from any goroutine.
type System struct {
	name    string
	log     *slog.Logger
	reg     prometheus.Registerer // nil: none
	metrics *metrics
	pool    *Pool
	done    chan struct{} // closed when Stop is over

	mu       sync.Mutex
	procs    []*proc // alive, in the order of spawning
	stopping bool
	stopErr  error // valid once done is closed
}

// NewSystem starts a system without actors. Its error is that of registering the
// metrics. Stop ends it.
func NewSystem(c Config) (*System, error) {
	s := &System{name: c.Name, log: c.Logger, reg: c.Registerer, done: make(chan struct{})}
	if s.name == "" {
		s.name = "actors"
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.metrics = newMetrics(s)
	s.pool = NewPool(c.Runners)
	if s.reg != nil {
		if err := s.reg.Register(s.metrics); err != nil {
			s.pool.Close()
			return nil, fmt.Errorf("actor: metrics: %w", err)
		}
	}
	return s, nil
}

// Stop stops the actors one by one, the last spawned first, so that an actor may
// use those that were there before it until its end: each refuses new mail,
// receives what is in its mailbox and has its Stopped called. When ctx ends,
// what is left in mailboxes is failed with ErrStopped instead; Stopped is called
// all the same. Then the pool is closed. Stop waits for all of it, also for a
// Receive that takes its time.
//
// It returns nil, or an error that wraps the context's when messages were failed.
// Another call waits for the first and returns the same. Stop must not be called
// from an actor.
func (s *System) Stop(ctx context.Context) error {
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		<-s.done
		return s.stopErr
	}
	s.stopping = true
	procs := slices.Clone(s.procs)
	s.mu.Unlock()

	discarded := uint64(0)
	for _, p := range slices.Backward(procs) {
		p.stop()
		select {
		case <-p.done:
		case <-ctx.Done():
			p.kill()
			<-p.done
		}
		discarded += p.info().DeadLetters.Stop
	}
	s.pool.Close()
	if s.reg != nil {
		s.reg.Unregister(s.metrics)
	}
	if discarded > 0 && ctx.Err() != nil {
		s.stopErr = fmt.Errorf("actor: %d messages discarded at the stop: %w", discarded, context.Cause(ctx))
	}
	close(s.done)
	return s.stopErr
}

func (s *System) add(p *proc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return ErrStopped
	}
	if p.name == "" || slices.ContainsFunc(s.procs, func(q *proc) bool { return q.name == p.name }) {
		return ErrName
	}
	s.procs = append(s.procs, p)
	return nil
}

func (s *System) remove(p *proc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.procs, p); i >= 0 {
		s.procs = slices.Delete(s.procs, i, i+1)
	}
}
