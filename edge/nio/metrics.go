package nio

import "github.com/prometheus/client_golang/prometheus"

// refusal is why a connection was closed as soon as it was accepted; a metric's
// label.
type refusal string

const (
	refusedConns             refusal = "conns"
	refusedConnsPerAddr      refusal = "conns_per_addr"
	refusedHandshakesPerAddr refusal = "handshakes_per_addr"
	refusedFiles             refusal = "files"   // no descriptor, or the poller had no room
	refusedHandler           refusal = "handler" // open returned nil
	refusedClosing           refusal = "closing"
	refusedOverload          refusal = "overload" // see Loop.Refuse
)

// failure is why a handshake came to nothing; a metric's label.
type failure string

const (
	failedTimeout  failure = "timeout"
	failedGone     failure = "gone"     // the peer closed or reset the connection
	failedProtocol failure = "protocol" // whatever crypto/tls did not accept
	failedCrowded  failure = "crowded"  // it made room for others
	failedClosing  failure = "closing"  // the loop was closed
)

// transport is whether a connection speaks TLS; a metric's label.
type transport int

const (
	plain transport = iota
	overTLS
)

// metrics are labelled from closed sets, and every series exists from the start.
type metrics struct {
	open              [2]prometheus.Gauge   // by transport
	accepted          [2]prometheus.Counter // by transport
	refused           map[refusal]prometheus.Counter
	acceptErrors      prometheus.Counter
	handshakeFailures map[failure]prometheus.Counter
	handshakeSeconds  prometheus.Histogram
	dropped           prometheus.Counter
}

// newMetrics registers the metrics with reg, which may be nil.
func newMetrics(reg prometheus.Registerer, unwritten func() float64) (*metrics, error) {
	open := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ommer_nio_connections",
		Help: "Connections that are open, their handshake done.",
	}, []string{"transport"})
	accepted := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_nio_accepted_total",
		Help: "Connections handed to a session.",
	}, []string{"transport"})
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_nio_refused_total",
		Help: "Connections closed as soon as they were accepted, by the reason: the limit that was reached, or overload.",
	}, []string{"reason"})
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_nio_handshake_failures_total",
		Help: "TLS handshakes that came to nothing.",
	}, []string{"reason"})
	m := &metrics{
		refused:           map[refusal]prometheus.Counter{},
		handshakeFailures: map[failure]prometheus.Counter{},
		acceptErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ommer_nio_accept_errors_total",
			Help: "Times that accepting failed and was tried again later.",
		}),
		handshakeSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ommer_nio_handshake_seconds",
			Help:    "Time from accepting a connection to the end of its TLS handshake, waiting included.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ommer_nio_dropped_bytes_total",
			Help: "Bytes that waited to be written when their connection ended.",
		}),
	}
	for t, name := range []string{plain: "plain", overTLS: "tls"} {
		m.open[t] = open.WithLabelValues(name)
		m.accepted[t] = accepted.WithLabelValues(name)
	}
	for _, r := range []refusal{
		refusedConns, refusedConnsPerAddr, refusedHandshakesPerAddr,
		refusedFiles, refusedHandler, refusedClosing, refusedOverload,
	} {
		m.refused[r] = refused.WithLabelValues(string(r))
	}
	for _, f := range []failure{failedTimeout, failedGone, failedProtocol, failedCrowded, failedClosing} {
		m.handshakeFailures[f] = failures.WithLabelValues(string(f))
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		open, accepted, refused, failures, m.acceptErrors, m.handshakeSeconds, m.dropped,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ommer_nio_unwritten_bytes",
			Help: "Bytes that wait in this process for their peers to take them.",
		}, unwritten),
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
