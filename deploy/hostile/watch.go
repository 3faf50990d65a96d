package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ommer/ommer/deploy/child"
)

// What the edge takes up, as its metrics call it.
const (
	openConnections = "ommer_nio_connections"
	openFiles       = "process_open_fds"
	goroutines      = "go_goroutines"
	panics          = `ommer_edge_sessions_ended_total{reason="internal failure"}`
)

// usage is what the edge takes up: at a moment, or at most.
type usage struct {
	RSS                      int64
	Conns, Files, Goroutines int
}

func (u usage) max(v usage) usage {
	return usage{max(u.RSS, v.RSS), max(u.Conns, v.Conns), max(u.Files, v.Files), max(u.Goroutines, v.Goroutines)}
}

// How often resident memory is read, and after how many readings the metrics: reading
// those costs the edge some CPU.
const (
	watchEvery   = 20 * time.Millisecond
	watchMetrics = 15
)

// watch looks at the edge all the time.
type watch struct {
	stack *stack
	stop  context.CancelFunc
	ended chan struct{}

	mu   sync.Mutex
	most usage
	err  error
}

func startWatch(ctx context.Context, s *stack) *watch {
	ctx, stop := context.WithCancel(ctx)
	w := &watch{stack: s, stop: stop, ended: make(chan struct{})}
	go w.run(ctx)
	return w
}

func (w *watch) end() {
	w.stop()
	<-w.ended
}

func (w *watch) run(ctx context.Context) {
	defer close(w.ended)
	for n := 0; pause(ctx, watchEvery); n++ {
		u, err := usage{}, error(nil)
		if n%watchMetrics == 0 {
			u, err = w.stack.usage(ctx)
		} else {
			u.RSS, err = child.RSS(w.stack.edge.PID())
		}
		w.mu.Lock()
		w.most = w.most.max(u)
		if err != nil && ctx.Err() == nil {
			w.err = err
		}
		w.mu.Unlock()
	}
}

// take returns the most since the last call.
func (w *watch) take() (usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	most, err := w.most, w.err
	w.most, w.err = usage{}, nil
	return most, err
}

// usage is what the edge takes up now.
func (s *stack) usage(ctx context.Context) (u usage, err error) {
	m, err := child.ReadMetrics(ctx, s.admin)
	if err != nil {
		return u, err
	}
	if n := m.Sum(panics); n > 0 {
		return u, fmt.Errorf("%v sessions of the edge have panicked", n)
	}
	u.Conns, u.Files, u.Goroutines = int(m.Sum(openConnections)), int(m.Sum(openFiles)), int(m.Sum(goroutines))
	u.RSS, err = child.RSS(s.edge.PID())
	return u, err
}
