package bus

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/prometheus/client_golang/prometheus"
)

// Reasons to ask again.
const (
	retryNoWorkers = iota
	retryRefused
	retryLink
	retryGone
	retrySlow
	retryReasons
)

var retryNames = [retryReasons]string{"no-workers", "refused", "link-lost", "worker-lost", "slow"}

const (
	// Round trips are counted in buckets that double from 1/4 ms to 16.384 s.
	firstBucket = 250 * time.Microsecond
	buckets     = 17
	// codes is how many outcomes there are; unknown codes count as Internal.
	codes = schema.Codes
)

// counts is what a shard counts. It lives under the shard's mutex, which is held
// when there is something to count, so that the hot path pays no further
// synchronization; the parts are added up when they are read.
type counts struct {
	outcomes [codes]uint64
	retries  [retryReasons]uint64
	late     uint64
	seconds  [buckets + 1]uint64
	sum      int64 // ns
}

func (c *counts) finished(a schema.Answer, took int64) {
	code := schema.OK
	if a.Err != nil {
		code = a.Err.Code
		if code == schema.OK || int(code) >= codes {
			code = schema.Internal
		}
	}
	c.outcomes[code]++
	// The bucket i holds what took at most firstBucket << i.
	units := uint64(max(took-1, 0)) / uint64(firstBucket)
	c.seconds[min(bits.Len64(units), buckets)]++
	c.sum += took
}

func (c *counts) add(o *counts) {
	for i, n := range o.outcomes {
		c.outcomes[i] += n
	}
	for i, n := range o.retries {
		c.retries[i] += n
	}
	for i, n := range o.seconds {
		c.seconds[i] += n
	}
	c.late += o.late
	c.sum += o.sum
}

// clientMetrics reads a client's counts when it is scraped.
type clientMetrics struct {
	c *Client

	asks, messages, pending, retries, late, unreadable, lost, seconds *prometheus.Desc
	workers, hedgeAfter, workerAsks, workerSeconds                    *prometheus.Desc
	link                                                              linkMetrics
}

func newClientMetrics(c *Client) *clientMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ommer_bus_"+name, help, labels, nil)
	}
	return &clientMetrics{
		c:             c,
		asks:          desc("asks_total", "Questions asked on the bus, by what came of them.", "outcome"),
		messages:      desc("ask_messages_total", "Messages that carried the questions."),
		pending:       desc("asks_pending", "Questions asked and not yet answered."),
		retries:       desc("ask_retries_total", "Questions sent again, by reason.", "reason"),
		late:          desc("late_answers_total", "Answers to questions that were over."),
		unreadable:    desc("unreadable_answers_total", "Messages on reply subjects that are no answers."),
		lost:          desc("lost_answers_total", "Answers dropped by the NATS client because too many waited."),
		seconds:       desc("ask_seconds", "Time from a question to its answer."),
		workers:       desc("workers", "Workers of the network that this process knows, by what they last said; silent ones say nothing any more.", "state"),
		hedgeAfter:    desc("hedge_after_seconds", "Time after which a second worker is asked as well."),
		workerAsks:    desc("worker_asks_total", "Questions sent to a worker, those that were sent again included; to the queue group without a name.", "worker"),
		workerSeconds: desc("worker_seconds", "Mean time that a worker lately took for a question, forgotten by half in 4 s.", "worker"),
		link:          newLinkMetrics("client"),
	}
}

// Describe implements prometheus.Collector.
func (m *clientMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.asks, m.messages, m.pending, m.retries, m.late, m.unreadable, m.lost, m.seconds, m.workers, m.hedgeAfter, m.workerAsks, m.workerSeconds} {
		ch <- d
	}
	m.link.describe(ch)
}

// Collect implements prometheus.Collector.
func (m *clientMetrics) Collect(ch chan<- prometheus.Metric) {
	var sum counts
	pending := 0
	for _, s := range m.c.shards {
		s.mu.Lock()
		sum.add(&s.counts)
		pending += s.table.used
		s.mu.Unlock()
	}
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	for i, n := range sum.outcomes {
		counter(m.asks, n, schema.Code(i).String())
	}
	for i, n := range sum.retries {
		counter(m.retries, n, retryNames[i])
	}
	messages := uint64(0)
	for _, l := range m.c.links {
		messages += l.messages.Load()
	}
	counter(m.messages, messages)
	counter(m.late, sum.late)
	counter(m.unreadable, m.c.unreadable.Load())
	ch <- prometheus.MustNewConstMetric(m.pending, prometheus.GaugeValue, float64(pending))

	for state, n := range m.c.fleet.states(m.c.now()) {
		ch <- prometheus.MustNewConstMetric(m.workers, prometheus.GaugeValue, float64(n), string(state))
	}
	ch <- prometheus.MustNewConstMetric(m.hedgeAfter, prometheus.GaugeValue, time.Duration(m.c.hedgeAfter.Load()).Seconds())
	counter(m.workerAsks, m.c.fleet.everyone.sent.Load(), "")
	for _, p := range m.c.fleet.all() { // those that are not asked now as well: counters stay
		counter(m.workerAsks, p.sent.Load(), p.name)
		ch <- prometheus.MustNewConstMetric(m.workerSeconds, prometheus.GaugeValue, time.Duration(p.took.Load()).Seconds(), p.name)
	}

	bounds := make(map[float64]uint64, buckets)
	total := uint64(0)
	for i, n := range sum.seconds {
		total += n
		if i < buckets {
			bounds[(firstBucket << i).Seconds()] = total
		}
	}
	ch <- prometheus.MustNewConstHistogram(m.seconds, total, time.Duration(sum.sum).Seconds(), bounds)

	lost := uint64(0)
	for i, l := range m.c.links {
		m.link.collect(ch, l.Link, strconv.Itoa(i))
		if len(l.subs) == 0 {
			continue
		}
		if n, err := l.subs[0].Dropped(); err == nil { // else it was closed
			lost += uint64(n)
		}
	}
	counter(m.lost, lost)
}

// linkMetrics shows the state of links. Side tells a client's from a server's in a
// process that has both.
type linkMetrics struct{ up, losses *prometheus.Desc }

func newLinkMetrics(side string) linkMetrics {
	labels := prometheus.Labels{"side": side}
	return linkMetrics{
		up:     prometheus.NewDesc("ommer_bus_link_up", "Whether the link is connected.", []string{"link"}, labels),
		losses: prometheus.NewDesc("ommer_bus_link_losses_total", "Connections lost.", []string{"link"}, labels),
	}
}

func (m linkMetrics) describe(ch chan<- *prometheus.Desc) {
	ch <- m.up
	ch <- m.losses
}

func (m linkMetrics) collect(ch chan<- prometheus.Metric, l *Link, number string) {
	up := 0.0
	if l.Up() {
		up = 1
	}
	ch <- prometheus.MustNewConstMetric(m.up, prometheus.GaugeValue, up, number)
	ch <- prometheus.MustNewConstMetric(m.losses, prometheus.CounterValue, float64(l.losses.Load()), number)
}
