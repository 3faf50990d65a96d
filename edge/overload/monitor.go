package overload

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is what a Monitor is made from.
type Config struct {
	Limits Limits
	Lanes  []Lane // the later of them counts

	// Changed is called by Run with each new stage, and must return soon.
	Changed func(Stage)

	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
}

// Monitor watches the pressure and says at which stage things are.
type Monitor struct {
	cfg    Config
	heap   *heap // nil when nobody knows how much memory there is
	queues []*queue
	ladder ladder
	stage  atomic.Uint32
	state  atomic.Pointer[figures]
}

// tick is how often the Monitor looks.
const tick = 100 * time.Millisecond

// figures are what a Monitor has seen last.
type figures struct {
	used  uint64
	late  time.Duration
	ratio pressure
}

// New returns a Monitor that watches nothing yet.
func New(cfg Config) (*Monitor, error) {
	if err := cfg.Limits.Validate(); err != nil {
		return nil, err
	}
	m := &Monitor{cfg: cfg}
	m.state.Store(&figures{})
	if budget := cfg.Limits.Budget(); budget > 0 {
		m.heap = newHeap(budget)
	}
	for _, l := range cfg.Lanes {
		m.queues = append(m.queues, &queue{Lane: l})
	}
	m.register(cfg.Registerer)
	return m, nil
}

func (m *Monitor) register(reg prometheus.Registerer) {
	if reg == nil {
		return
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ommer_edge_overload_stage", Help: "What is shed: 0 nothing, 1 keep-alive, 2 new connections, 3 requests.",
	}, func() float64 { return float64(m.Stage()) }))
	for r, name := range resourceNames {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ommer_edge_overload_pressure", Help: "How much of what may be taken is taken, 1 for all of it.",
			ConstLabels: prometheus.Labels{"resource": name},
		}, func() float64 { return m.state.Load().ratio[r] }))
	}
}

// Stage is what is to be shed. Any goroutine may call it.
func (m *Monitor) Stage() Stage { return Stage(m.stage.Load()) }

// Err says in words that new connections or more are refused, nil when they are not.
func (m *Monitor) Err() error {
	if s := m.Stage(); s >= RefuseConns {
		f := m.state.Load()
		return fmt.Errorf("overload: %v (memory %.0f %%, delay %.0f %% of the limit)", s, 100*f.ratio[memory], 100*f.ratio[delay])
	}
	return nil
}

// Run watches until ctx ends. It may be called once.
func (m *Monitor) Run(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			m.look()
		case <-ctx.Done():
			return
		}
	}
}

// look measures, and changes the stage if that is called for.
func (m *Monitor) look() {
	f := new(figures)
	for _, q := range m.queues {
		f.late = max(f.late, q.look(time.Now()))
	}
	f.ratio[delay] = float64(f.late) / float64(m.cfg.Limits.Delay)
	if m.heap != nil {
		f.used = m.heap.used(time.Now())
		f.ratio[memory] = float64(f.used) / float64(m.heap.budget)
	}
	m.state.Store(f)
	if m.cfg.Limits.Off {
		return
	}
	was := m.ladder.stage
	is := m.ladder.step(time.Now(), f.ratio)
	if is == was {
		return
	}
	m.stage.Store(uint32(is))
	m.cfg.Changed(is)
	level := slog.LevelWarn
	if is < was {
		level = slog.LevelInfo
	}
	m.cfg.Logger.Log(context.Background(), level, "overload: what is shed has changed", "stage", is.String(), "was", was.String(),
		"memory", f.used, "memory_percent", int(100*f.ratio[memory]), "delay", f.late, "delay_percent", int(100*f.ratio[delay]))
}
