package keys

import "github.com/prometheus/client_golang/prometheus"

// Reasons to leave out a record.
const (
	skipGarbage = "garbage"
	skipFull    = "full"
)

// metrics is what a directory counts.
type metrics struct {
	d       *Directory
	known   *prometheus.Desc
	ready   *prometheus.Desc
	loads   prometheus.Counter
	revoked prometheus.Counter
	skips   *prometheus.CounterVec
}

func newMetrics(d *Directory) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		d:       d,
		known:   prometheus.NewDesc("ommer_keys_known", "API keys in memory, revoked ones included.", nil, nil),
		ready:   prometheus.NewDesc("ommer_keys_ready", "Whether the API keys have been read once.", nil, nil),
		loads:   counter("ommer_keys_loads_total", "How often all API keys were read."),
		revoked: counter("ommer_keys_revoked_total", "API keys that stopped being good while they were known."),
		skips: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ommer_keys_skipped_total", Help: "Records left out, by reason.",
		}, []string{"reason"}),
	}
	for _, r := range []string{skipGarbage, skipFull} {
		m.skips.WithLabelValues(r)
	}
	return m
}

func (m *metrics) skipped(reason string) { m.skips.WithLabelValues(reason).Inc() }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.known
	ch <- m.ready
	m.loads.Describe(ch)
	m.revoked.Describe(ch)
	m.skips.Describe(ch)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	ready := 0.0
	if m.d.Ready() {
		ready = 1
	}
	ch <- prometheus.MustNewConstMetric(m.known, prometheus.GaugeValue, float64(m.d.Len()))
	ch <- prometheus.MustNewConstMetric(m.ready, prometheus.GaugeValue, ready)
	m.loads.Collect(ch)
	m.revoked.Collect(ch)
	m.skips.Collect(ch)
}
