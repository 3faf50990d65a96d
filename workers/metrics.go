package workers

import (
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/schema"
)

// source is how a question was met.
type source uint8

const (
	sourceHit       source = iota // the cache had the block
	sourceMiss                    // the source was asked
	sourceCoalesced               // the source was being asked already
	sourceBeyond                  // the index is one that no block has
	sourceView                    // where the block stands says that it has none
	numSources
)

var sourceNames = [numSources]string{"hit", "miss", "coalesced", "beyond", "view"}

// numCodes is the number of codes that failures are counted by.
const numCodes = schema.Codes

// counters count for one shard. There is one set per shard so that shards on
// different cores do not write to the same memory.
type counters struct {
	lookups  [numSources]atomic.Uint64
	failures [numCodes]atomic.Uint64
}

func (c *counters) looked(s source)      { c.lookups[s].Add(1) }
func (c *counters) failed(e schema.Code) { c.failures[e].Add(1) }

// registerMetrics registers what the slots count and returns what takes it back. A nil
// registerer takes nothing.
func registerMetrics(reg prometheus.Registerer, slots []*slot) (unregister func(), err error) {
	if reg == nil {
		return func() {}, nil
	}
	sum := func(of func(*slot) float64) func() float64 {
		return func() (total float64) {
			for _, s := range slots {
				total += of(s)
			}
			return total
		}
	}
	var all []prometheus.Collector
	counter := func(name, help string, labels prometheus.Labels, of func(*slot) float64) {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, sum(of)))
	}
	gauge := func(name, help string, of func(*slot) float64) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, sum(of)))
	}
	for i, name := range sourceNames {
		counter("ommer_workers_lookups_total", "Questions by how they were met.",
			prometheus.Labels{"source": name}, func(s *slot) float64 { return float64(s.count.lookups[i].Load()) })
	}
	for i, name := range sourceNames[:sourceBeyond] {
		counter("ommer_workers_warm_lookups_total", "Blocks that were asked for because a snapshot named them, by how that was met.",
			prometheus.Labels{"source": name}, func(s *slot) float64 { return float64(s.warmed.lookups[i].Load()) })
	}
	counter("ommer_workers_warm_failures_total", "Blocks that a snapshot named and that could not be had.", nil, func(s *slot) (failed float64) {
		for i := range s.warmed.failures {
			failed += float64(s.warmed.failures[i].Load())
		}
		return failed
	})
	for code := schema.Internal; int(code) < numCodes; code++ {
		counter("ommer_workers_failures_total", "Questions answered with a failure, by its code.",
			prometheus.Labels{"code": code.String()}, func(s *slot) float64 { return float64(s.count.failures[code].Load()) })
	}
	counter("ommer_workers_cache_evictions_total", "Blocks that had to leave the cache for others.", nil,
		func(s *slot) float64 { return float64(s.evicted.Load()) })
	gauge("ommer_workers_cache_entries", "Blocks in the cache.", func(s *slot) float64 { return float64(s.entries.Load()) })
	gauge("ommer_workers_cache_bytes", "Bytes that the cache takes.", func(s *slot) float64 { return float64(s.bytes.Load()) })
	gauge("ommer_workers_cache_limit_bytes", "Bytes that the cache may take.", func(s *slot) float64 { return float64(s.limit.Load()) })
	gauge("ommer_workers_waiting_questions", "Questions that wait for the source.", func(s *slot) float64 { return float64(s.waiting.Load()) })
	gauge("ommer_workers_fetches", "Blocks that the source is being asked for.", func(s *slot) float64 { return float64(s.fetches.Load()) })

	var taken []prometheus.Collector
	unregister = func() {
		for _, c := range taken {
			reg.Unregister(c)
		}
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			unregister()
			return func() {}, fmt.Errorf("workers: metrics: %w", err)
		}
		taken = append(taken, c)
	}
	return unregister, nil
}
