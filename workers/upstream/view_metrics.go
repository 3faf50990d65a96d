package upstream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collectors are the metrics of the view.
func (c *canon) collectors() []prometheus.Collector {
	gauge := func(name, help string, of func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, of)
	}
	number := func(of func(*View) (uint64, bool)) func() float64 {
		return func() float64 {
			v := c.state.Load()
			if v == nil {
				return 0
			}
			return known(of(v))
		}
	}
	return []prometheus.Collector{
		gauge("ommer_upstream_view_latest_block", "Head of the chain as followed, 0 when unknown.",
			number(func(v *View) (uint64, bool) { return v.Latest(), true })),
		gauge("ommer_upstream_view_safe_block", "Safe block of the chain as followed, 0 when there is none.", number((*View).Safe)),
		gauge("ommer_upstream_view_finalized_block", "Finalized block of the chain as followed, 0 when there is none.", number((*View).Finalized)),
		gauge("ommer_upstream_view_blocks", "Blocks below the head, and it, of which it is known where they stand.",
			number(func(v *View) (uint64, bool) { return v.tip - v.first + 1, true })),
		gauge("ommer_upstream_view_age_seconds", "Time since a node has last told of a block of the chain as followed.",
			func() float64 { return c.age(time.Now()).Seconds() }),
		gauge("ommer_upstream_last_reorg_blocks", "Blocks that the last reorg has displaced.",
			number(func(v *View) (uint64, bool) { return v.displaced, true })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "ommer_upstream_reorgs_total", Help: "Times that blocks of the chain were displaced by others.",
		}, number(func(v *View) (uint64, bool) { return v.reorgs, true })),
	}
}
