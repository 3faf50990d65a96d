package certs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics have a series for each file and outcome from the start.
type metrics struct {
	expiry         *prometheus.GaugeVec
	loaded, failed prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ommer_edge_certificate_expiry_timestamp_seconds",
		Help: "When the certificate in use ends, or one of its chain that ends before it; by the file it came from.",
	}, []string{"file"})}
	loads := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ommer_edge_tls_loads_total",
		Help: "How often files of certificates or ticket keys were loaded, and how often they had changed but could not be used.",
	}, []string{"outcome"})
	m.loaded, m.failed = loads.WithLabelValues("loaded"), loads.WithLabelValues("failed")
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.expiry, loads} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) expires(file string, at time.Time) {
	m.expiry.WithLabelValues(file).Set(float64(at.Unix()))
}
