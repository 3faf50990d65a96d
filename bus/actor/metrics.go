package actor

import "github.com/prometheus/client_golang/prometheus"

// metrics are read from the actors when they are asked for, so that counting
// costs the actors nothing. The label system is the system's name, actor the actor's.
type metrics struct {
	sys *System

	length, capacity, received, refused, crashes, restarts, dead, queued *prometheus.Desc
}

func newMetrics(s *System) *metrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ommer_actor_"+name, help, labels, prometheus.Labels{"system": s.name})
	}
	return &metrics{
		sys:      s,
		length:   desc("mailbox_length", "Messages that wait in the mailbox.", "actor"),
		capacity: desc("mailbox_capacity", "Places in the mailbox, those reserved for answers included.", "actor"),
		received: desc("received_total", "Messages taken out of the mailbox.", "actor"),
		refused:  desc("refused_total", "Messages refused because the mailbox was full.", "actor"),
		crashes:  desc("crashes_total", "Panics of the actor, and starts after one that failed.", "actor"),
		restarts: desc("restarts_total", "Starts after a crash that worked.", "actor"),
		dead: desc("dead_letters_total", "Messages taken and not handled to their end: "+
			"the actor panicked (reason panic) or they were discarded at its stop (reason stop).", "actor", "reason"),
		queued: desc("pool_queue_length", "Actors that have work and wait for a goroutine."),
	}
}

// Describe sends the descriptions of all metrics.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.length, m.capacity, m.received, m.refused, m.crashes, m.restarts, m.dead, m.queued} {
		ch <- d
	}
}

// Collect sends the metrics of the actors that are alive, and of the pool.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for _, i := range m.sys.Actors() {
		gauge(m.length, i.Mailbox, i.Name)
		gauge(m.capacity, i.MailboxCap, i.Name)
		count(m.received, i.Received, i.Name)
		count(m.refused, i.Refused, i.Name)
		count(m.crashes, i.Crashes, i.Name)
		count(m.restarts, i.Restarts, i.Name)
		count(m.dead, i.DeadLetters.Panic, i.Name, "panic")
		count(m.dead, i.DeadLetters.Stop, i.Name, "stop")
	}
	gauge(m.queued, m.sys.pool.Queued())
}
