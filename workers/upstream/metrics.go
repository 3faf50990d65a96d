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
	lookups  *prometheus.CounterVec // by outcome
	seconds  prometheus.Observer
	requests prometheus.Counter
	calls    prometheus.Counter
}

func (m *nodeMetrics) count(err error, found bool) {
	if m == nil {
		return
	}
	m.lookups.WithLabelValues(outcomeName(err, found)).Inc()
}

// called counts a request with a number of calls in it.
func (m *nodeMetrics) called(calls int) {
	if m == nil {
		return
	}
	m.requests.Inc()
	m.calls.Add(float64(calls))
}

func outcomeName(err error, found bool) string {
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

// setMetrics are those of all nodes together. A nil one counts nothing.
type setMetrics struct{ hedges prometheus.Counter }

// hedged counts a lookup for which a second node was asked since the first took long.
func (m *setMetrics) hedged() {
	if m != nil {
		m.hedges.Inc()
	}
}

// register registers the metrics and returns what takes them back. A nil registerer
// takes none.
func (s *Set) register(reg prometheus.Registerer) (unregister func(), err error) {
	if reg == nil {
		return func() {}, nil
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	lookups := counter("ommer_upstream_lookups_total", "Blocks asked of a node, by what came of it.", "upstream", "outcome")
	requests := counter("ommer_upstream_requests_total", "Round trips to a node.", "upstream")
	calls := counter("ommer_upstream_calls_total", "JSON-RPC calls in them.", "upstream")
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "ommer_upstream_round_trip_seconds",
		Help:    "Time that a node took for some blocks and their uncles, asked at once.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"upstream"})
	s.metrics = &setMetrics{prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ommer_upstream_hedges_total", Help: "Blocks asked of one more node, since the others took long or seemed to hang.",
	})}
	collectors := append(s.canon.collectors(), lookups, requests, calls, seconds, s.metrics.hedges)
	for _, n := range s.nodes {
		label := prometheus.Labels{"upstream": n.name}
		n.metrics = &nodeMetrics{lookups.MustCurryWith(label), seconds.With(label), requests.With(label), calls.With(label)}
		collectors = append(collectors, n.gauges(label)...)
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

// gauges show the state of a node.
func (n *node) gauges(label prometheus.Labels) (list []prometheus.Collector) {
	gauge := func(name, help string, f func() float64) {
		list = append(list, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: label}, f))
	}
	truth := func(yes bool) float64 {
		if yes {
			return 1
		}
		return 0
	}
	gauge("ommer_upstream_up", "1 when the node is up.", func() float64 { return truth(n.health.reason() == nil) })
	gauge("ommer_upstream_left_alone", "1 while the node is not asked since it said that it is overloaded.",
		func() float64 { return truth(n.shut.left(time.Now()) > 0) })
	gauge("ommer_upstream_in_flight_requests", "Round trips under way.", func() float64 { return float64(n.flights.Load()) })
	gauge("ommer_upstream_in_flight_lookups", "Blocks that a node is being asked for.", func() float64 { return float64(n.aboard.Load()) })
	gauge("ommer_upstream_waiting_lookups", "Blocks that wait for their turn at a node.", func() float64 { return float64(n.waiting.Load()) })
	gauge("ommer_upstream_batch_blocks", "Blocks that a node is asked for at once, at most.", func() float64 { return float64(n.batch.Load()) })
	gauge("ommer_upstream_latest_block", "Highest block that a node has told of, 0 when none.",
		func() float64 { h, ok := n.Latest(); return known(h, ok) })
	gauge("ommer_upstream_finalized_block", "Last finalized block that a node has told of, 0 when none.",
		func() float64 { h, ok := n.Finalized(); return known(h, ok) })
	return list
}

func known(h uint64, ok bool) float64 {
	if !ok {
		return 0
	}
	return float64(h)
}
