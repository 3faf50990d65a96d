package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers"
	"github.com/ommer/ommer/workers/snapshot"
)

// DefaultSnapshotInterval is how often a snapshot is written.
const DefaultSnapshotInterval = 5 * time.Minute

// keeper reads a snapshot when the worker starts and writes it from then on. A nil one
// does nothing. A file that cannot be read or written is logged, and never keeps a worker
// from its work.
type keeper struct {
	path    string
	every   time.Duration
	pool    *workers.Pool
	chainID func() (uint64, bool)
	log     *slog.Logger

	looked bool              // at the file
	rest   []schema.Selector // of what was read, not yet asked for

	written prometheus.Gauge
	failed  prometheus.Counter
}

func newKeeper(cfg Config, reg prometheus.Registerer, pool *workers.Pool, chainID func() (uint64, bool)) (*keeper, error) {
	k := &keeper{
		path: cfg.Snapshot, every: cfg.SnapshotInterval, pool: pool, chainID: chainID, log: cfg.Log.With("snapshot", cfg.Snapshot),
		written: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ommer_workers_snapshot_timestamp_seconds", Help: "When the snapshot was last written, in seconds since 1970; 0 before.",
		}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ommer_workers_snapshot_failures_total", Help: "Snapshots that could not be read or written.",
		}),
	}
	if k.every == 0 {
		k.every = DefaultSnapshotInterval
	}
	for _, c := range []prometheus.Collector{k.written, k.failed} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("daemon: metrics: %w", err)
		}
	}
	return k, nil
}

// run reads the snapshot and has the pool ask for its blocks, and then writes it now and
// then, until ctx ends. While the pool has not asked for all, the old file stands.
func (k *keeper) run(ctx context.Context) {
	if k == nil || !k.waitForSource(ctx) {
		return
	}
	if blocks := k.read(); len(blocks) > 0 {
		began := time.Now()
		if k.rest = k.pool.Warm(ctx, blocks); k.rest == nil {
			k.log.Info("the blocks of the snapshot were asked for", "blocks", len(blocks), "took", time.Since(began))
		}
	}
	tick := time.NewTicker(k.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.write()
		case <-ctx.Done():
			return
		}
	}
}

// waitForSource waits until there is somebody to ask, who tells of which chain it is too.
func (k *keeper) waitForSource(ctx context.Context) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, known := k.chainID(); known && k.pool.Ready() == nil {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

func (k *keeper) read() []schema.Selector {
	k.looked = true
	chain, _ := k.chainID()
	blocks, err := snapshot.Read(k.path, chain)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.log.Info("there is no snapshot yet")
	case err != nil:
		k.failed.Inc()
		k.log.Warn("the snapshot is not used; it will be replaced", "err", err)
	default:
		k.log.Info("the snapshot is read", "blocks", len(blocks))
	}
	return blocks
}

// write writes what is kept, and behind it what was read and not asked for any more. It
// leaves the file alone when that is nothing, or when the file was not looked at: a worker
// that never reached its nodes knows no better than the one before it. It must not run
// beside run.
func (k *keeper) write() {
	if k == nil || !k.looked {
		return
	}
	chain, _ := k.chainID() // known since
	blocks, err := k.pool.Kept(snapshot.MaxBlocks)
	if err == nil {
		blocks = join(blocks, k.rest)
		if len(blocks) == 0 {
			return
		}
		err = snapshot.Write(k.path, snapshot.Snapshot{Chain: chain, Blocks: blocks})
	}
	if err != nil {
		k.failed.Inc()
		k.log.Warn("the snapshot is not written", "err", err)
		return
	}
	k.written.SetToCurrentTime()
	k.log.Debug("the snapshot is written", "blocks", len(blocks))
}

// join appends the blocks of rest that are not among the others.
func join(blocks, rest []schema.Selector) []schema.Selector {
	if len(rest) == 0 {
		return blocks
	}
	has := make(map[schema.Selector]bool, len(blocks))
	for _, b := range blocks {
		has[b] = true
	}
	for _, b := range rest {
		if !has[b] {
			blocks = append(blocks, b)
		}
	}
	return blocks
}
