package bus

import (
	"strconv"

	"github.com/ommer/ommer/schema"
	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes of a question beside those that a schema.Code names.
const (
	outcomeOverloaded  = "overloaded"
	outcomeUnsupported = "unsupported"
	outcomeExpired     = "expired"    // answered after its deadline, and not sent
	outcomeInvalid     = "invalid"    // plain JSON that asks nothing
	outcomeUnreadable  = "unreadable" // neither a frame nor JSON
)

// serverMetrics is what a server counts.
type serverMetrics struct {
	server    *Server
	questions *prometheus.CounterVec
	byCode    [codes]prometheus.Counter
	other     map[string]prometheus.Counter
	unsent    prometheus.Counter
	messages  prometheus.Counter
	seconds   prometheus.Histogram
	inFlight  *prometheus.Desc
	lost      *prometheus.Desc
	link      linkMetrics
}

func newServerMetrics(s *Server) *serverMetrics {
	m := &serverMetrics{
		server: s,
		questions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ommer_bus_questions_total", Help: "Questions taken from the bus, by what came of them.",
		}, []string{"outcome"}),
		messages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ommer_bus_answer_messages_total", Help: "Messages that carried the answers.",
		}),
		unsent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ommer_bus_unsent_answers_total", Help: "Answers that could not be sent for want of a connection.",
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ommer_bus_question_seconds", Help: "Time from a question's arrival to its answer.",
			Buckets: prometheus.ExponentialBuckets(firstBucket.Seconds(), 2, buckets),
		}),
		inFlight: prometheus.NewDesc("ommer_bus_questions_in_flight", "Questions being looked up.", nil, nil),
		lost:     prometheus.NewDesc("ommer_bus_lost_questions_total", "Questions dropped by the NATS client because too many waited.", nil, nil),
		link:     newLinkMetrics("server"),
		other:    map[string]prometheus.Counter{},
	}
	for c := range m.byCode {
		m.byCode[c] = m.questions.WithLabelValues(schema.Code(c).String())
	}
	for _, o := range []string{outcomeOverloaded, outcomeUnsupported, outcomeExpired, outcomeInvalid, outcomeUnreadable} {
		m.other[o] = m.questions.WithLabelValues(o)
	}
	return m
}

func (m *serverMetrics) outcome(name string) { m.other[name].Inc() }

func (m *serverMetrics) answered(a schema.Answer) {
	code := schema.OK
	if a.Err != nil {
		if code = a.Err.Code; code == schema.OK || int(code) >= codes {
			code = schema.Internal
		}
	}
	m.byCode[code].Inc()
}

// Describe implements prometheus.Collector.
func (m *serverMetrics) Describe(ch chan<- *prometheus.Desc) {
	m.questions.Describe(ch)
	m.unsent.Describe(ch)
	m.messages.Describe(ch)
	m.seconds.Describe(ch)
	ch <- m.inFlight
	ch <- m.lost
	m.link.describe(ch)
}

// Collect implements prometheus.Collector.
func (m *serverMetrics) Collect(ch chan<- prometheus.Metric) {
	m.questions.Collect(ch)
	m.unsent.Collect(ch)
	m.messages.Collect(ch)
	m.seconds.Collect(ch)
	ch <- prometheus.MustNewConstMetric(m.inFlight, prometheus.GaugeValue, float64(m.server.inFlight.Load()))
	lost := 0
	for _, l := range m.server.links {
		lost += m.server.lost(l)
		m.link.collect(ch, l.Link, strconv.Itoa(l.number))
	}
	ch <- prometheus.MustNewConstMetric(m.lost, prometheus.CounterValue, float64(lost))
}

// lost is how many messages of a link were dropped because too many waited.
func (s *Server) lost(l *serverLink) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := l.dropped
	for _, sub := range l.subs {
		n, _ := sub.Dropped() // an error means that it was closed
		lost += n
	}
	return lost
}
