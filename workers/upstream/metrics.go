package upstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// outcomes are the values of the label outcome, in the order in which an error is
// matched against them.
var outcomes = [...]struct {
	name string
	err  error
}{
	{"pruned", ErrPruned},
	{"untrue", ErrUntrue},
	{"unknown_fields", ErrUnknownFields},
	{"overloaded", ErrOverloaded},
	{"unreachable", ErrUnreachable},
	{"failed", ErrFailed},
}

const (
	outcomeFound = "found"
	outcomeNone  = "none" // no such block
)

// nodeMetrics are the metrics of one node. A nil one counts nothing.
type nodeMetrics struct {
	lookups *prometheus.CounterVec // by outcome
	seconds prometheus.Observer
}

func (m *nodeMetrics) count(err error, found bool) {
	if m == nil {
		return
	}
	m.lookups.WithLabelValues(outcome(err, found)).Inc()
}

func outcome(err error, found bool) string {
	switch {
	case err == nil && found:
		return outcomeFound
	case err == nil:
		return outcomeNone
	}
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			return o.name
		}
	}
	return "failed"
}

func (m *nodeMetrics) observe(d time.Duration) {
	if m == nil {
		return
	}
	m.seconds.Observe(d.Seconds())
}

// registerMetrics registers the metrics of the nodes, and more, and returns what takes them
// back. A nil registerer takes none.
func registerMetrics(reg prometheus.Registerer, nodes []*node, more ...prometheus.Collector) (unregister func(), err error) {
	if reg == nil {
		return func() {}, nil
	}
	lookups := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_upstream_lookups_total",
		Help: "Blocks asked of a node, by what came of it.",
	}, []string{"upstream", "outcome"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "ommer_upstream_lookup_seconds",
		Help:    "Time that a node took for a block and its uncles.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"upstream"})
	collectors := append(more, lookups, seconds)
	for _, n := range nodes {
		label := prometheus.Labels{"upstream": n.name}
		n.metrics = &nodeMetrics{lookups.MustCurryWith(label), seconds.With(label)}
		gauge := func(name, help string, f func() float64) {
			collectors = append(collectors, prometheus.NewGaugeFunc(
				prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: label}, f))
		}
		gauge("ommer_upstream_up", "1 when the node is up.", func() float64 {
			if n.health.reason() == nil {
				return 1
			}
			return 0
		})
		gauge("ommer_upstream_in_flight_lookups", "Lookups that a node is being asked.",
			func() float64 { return float64(len(n.slots)) })
		gauge("ommer_upstream_waiting_lookups", "Lookups that wait for their turn at a node.",
			func() float64 { return float64(n.waiting.Load()) })
		gauge("ommer_upstream_latest_block", "Highest block that a node has told of, 0 when none.",
			func() float64 { h, ok := n.Latest(); return known(h, ok) })
		gauge("ommer_upstream_finalized_block", "Last finalized block that a node has told of, 0 when none.",
			func() float64 { h, ok := n.Finalized(); return known(h, ok) })
	}
	var taken []prometheus.Collector
	unregister = func() {
		for _, c := range taken {
			reg.Unregister(c)
		}
	}
	for _, c := range collectors {
		if err := reg.Register(c); err != nil {
			unregister()
			return nil, fmt.Errorf("upstream: metrics: %w", err)
		}
		taken = append(taken, c)
	}
	return unregister, nil
}

func known(h uint64, ok bool) float64 {
	if !ok {
		return 0
	}
	return float64(h)
}
