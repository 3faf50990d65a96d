// Package daemon assembles the workers of a process, one per network: two links to the bus, the upstream
// nodes, the archive, the pool that answers from them, and the server that puts the
// pool on the bus. The binary ommer-worker is a thin main around it, and the
// all-in-one server runs one beside an edge.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/schema/network"
	"github.com/ommer/ommer/workers"
	"github.com/ommer/ommer/workers/archive"
	"github.com/ommer/ommer/workers/snapshot"
	"github.com/ommer/ommer/workers/upstream"
)

// Options are the flags of a worker.
type Options struct {
	Upstream         []upstream.URL `placeholder:"URL,..." help:"Ethereum nodes to ask, http, https, ws or wss, the preferred one first. Behind a # each may have terms of its own, joined by &: priority=N, nodes of the same one share the work; weight=W, its part of it; rps=CALLS per second at most; in-flight=N requests at a time, default 4; batch=BLOCKS in one of them, default 32."`
	Verify           string         `enum:"on,off" default:"on" help:"Whether blocks and uncles of nodes are proved by their hashes (on, the default), or believed (off): then a node that lies, or mixes up two blocks, has its uncles passed on to callers and kept. It saves some microseconds of computing per block."`
	Archive          []string       `placeholder:"PATH,..." type:"path" help:"History to look into before nodes are asked: files that 'ommer archive build' has made, era1 files, or folders of them. Without --upstream it is all that is answered from."`
	CacheBytes       int64          `placeholder:"BYTES" default:"268435456" help:"Memory for answered blocks; several networks get equal parts. Default ${default}; 0 means the same."`
	Snapshot         string         `placeholder:"FILE" type:"path" help:"Keep the names of the cached blocks in this file, and ask for them after a restart. Each worker is best given its own. With several networks each has one, FILE.NAME."`
	SnapshotInterval time.Duration  `placeholder:"DURATION" default:"5m" help:"How often to write it, beside when the worker stops. Default ${default}; 0 means the same."`
	MaxInFlight      int            `placeholder:"N" default:"32768" help:"Lookups at a time, of each network; more are refused at once, so that another worker can take them. Default ${default}; 0 means the same."`
	MaxWait          time.Duration  `placeholder:"DURATION" default:"5ms" help:"How long lookups may stand in line before they are begun, or sent to a node. When all of them have waited for longer for a while, new ones are refused until the line is shorter, so that another worker can take them. Default ${default}; 0 means the same; with an hour there is no bound in effect."`
}

// Validate reports values that cannot work, by the names of their flags.
func (o Options) Validate() error {
	if o.MaxInFlight > bus.MaxInFlightLimit {
		return fmt.Errorf("--max-in-flight: must be %d at most", bus.MaxInFlightLimit)
	}
	if o.SnapshotInterval < 0 {
		return errors.New("--snapshot-interval: must not be negative")
	}
	if o.Snapshot != "" {
		if st, err := os.Stat(filepath.Dir(o.Snapshot)); err != nil || !st.IsDir() {
			return fmt.Errorf("--snapshot: there is no folder %s", filepath.Dir(o.Snapshot))
		}
		if st, err := os.Stat(o.Snapshot); err == nil && !st.Mode().IsRegular() {
			return fmt.Errorf("--snapshot: %s is no file", o.Snapshot)
		}
	}
	return nil
}

// Config is what a Daemon is made from.
type Config struct {
	Options
	Name    string // of the worker: one token of letters, digits, - and _
	Network network.Network
	Zone    string // where it is, a token or empty
	Bus     bus.Flags
	Log     *slog.Logger
	Admin   *process.Admin
}

// Daemon is a worker and its ways to the bus and to the nodes.
type Daemon struct {
	links  []*bus.Link
	nodes  *upstream.Set // nil: there is an archive only
	files  *archive.Set  // nil: there are nodes only
	pool   *workers.Pool
	server *bus.Server
	keeper *keeper // nil: there is no snapshot
}

// links is how many connections to the bus a worker has: while one is being made anew
// the other goes on.
const links = 2

// hold is how much is kept of answers while the connection to the bus is being
// made anew, in bytes.
const hold = 4 << 20

// New begins to connect. It waits neither for the bus nor for the nodes: until
// they are there, readiness says what is missing.
func New(cfg Config) (_ *Daemon, err error) {
	if cfg.Snapshot != "" {
		if err := snapshot.CheckPath(cfg.Snapshot); err != nil {
			return nil, process.Usage{Err: fmt.Errorf("--snapshot: %w", err)}
		}
	}
	d := &Daemon{}
	defer func() {
		if err != nil {
			d.abandon(context.Background())
		}
	}()
	scope := cfg.Admin.Scope(cfg.Network.Name)
	source, err := d.source(cfg, scope.Registerer)
	if err != nil {
		return nil, err
	}
	d.pool, err = workers.New(workers.Config{
		Source: source, CacheBytes: cfg.CacheBytes, MaxWait: cfg.MaxWait, Merged: cfg.Network.Merged,
		Logger: cfg.Log, Registerer: scope.Registerer,
	})
	if err != nil {
		return nil, err
	}
	link := cfg.Bus.Link(cfg.Name, cfg.Log)
	link.Hold = hold
	if d.links, err = bus.DialApart(link, links); err != nil {
		return nil, process.Usage{Err: err} // the configuration is the only thing that can be wrong
	}
	d.server, err = bus.NewServer(bus.ServerConfig{
		Links: d.links, Network: cfg.Network.Name, Resolver: d.pool,
		WorkerID: cfg.Name, Zone: cfg.Zone, Version: process.Version(),
		Ready: d.pool.Ready, Figures: func() any { return d.pool.Figures() },
		MaxInFlight: cfg.MaxInFlight, Logger: cfg.Log, Registerer: scope.Registerer,
	})
	if err != nil {
		return nil, err
	}
	scope.Check("worker_bus", func() error {
		if missing := d.server.Missing(); missing != "" {
			return errors.New(missing)
		}
		return nil
	})
	if d.nodes != nil {
		scope.Check("upstream", d.nodes.Ready)
	}
	actors := actor.Page{d.pool.Actors()}
	if d.nodes != nil {
		actors = append(actors, d.nodes.Actors())
	}
	scope.Handle("GET /actors", actors)
	if cfg.Snapshot != "" {
		if d.keeper, err = newKeeper(cfg, scope.Registerer, d.pool, d.chainID); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// chainID is the ID of the chain that is answered from, false before it is known.
func (d *Daemon) chainID() (uint64, bool) {
	if d.files != nil {
		return d.files.Chain().ID, true
	}
	return d.nodes.ChainID()
}

// source opens what the worker answers from: an archive, nodes, or the one before the
// others. They have to be of one chain, which is that of the network where it is known.
func (d *Daemon) source(cfg Config, reg prometheus.Registerer) (workers.Source, error) {
	var err error
	chain := cfg.Network.ChainID
	if len(cfg.Archive) > 0 {
		if d.files, err = archive.OpenSet(context.Background(), cfg.Archive, cfg.Log); err != nil {
			return nil, process.Usage{Err: fmt.Errorf("--archive: %w", err)}
		}
		of := d.files.Chain().ID
		if chain != 0 && of != 0 && of != chain {
			return nil, process.Usage{Err: fmt.Errorf("--archive: it is of chain %d, and the network %s is chain %d", of, cfg.Network.Name, chain)}
		}
		chain = cmp.Or(chain, of)
	}
	var source workers.Source // a nil *upstream.Set would not be nil in it
	if len(cfg.Upstream) > 0 || d.files == nil {
		urls := make([]string, len(cfg.Upstream))
		for i, u := range cfg.Upstream {
			urls[i] = string(u)
		}
		d.nodes, err = upstream.New(upstream.Config{
			URLs: urls, ChainID: chain, Finality: cfg.Network.Finality, MaxWait: cfg.MaxWait, Believe: cfg.Verify == "off",
			Logger: cfg.Log, Registerer: reg,
		})
		if err != nil {
			return nil, err
		}
		source = d.nodes
		if cfg.Verify == "off" {
			cfg.Log.Warn("what nodes answer is not verified, since --verify is off: false uncles are passed on")
		}
	}
	if d.files == nil {
		return source, nil
	}
	return workers.NewArchived(workers.ArchivedConfig{Files: d.files, Next: source, Logger: cfg.Log, Registerer: reg})
}

// Uncled is the number of a block in the archive that has uncles, for examples; false
// when there is none.
func (d *Daemon) Uncled() (uint64, bool) {
	if d.files == nil {
		return 0, false
	}
	return d.files.Uncled()
}

// Asks says whether there are nodes to ask, not an archive alone.
func (d *Daemon) Asks() bool { return d.nodes != nil }

// leaveTimeout bounds how long questions in flight may take when the worker stops.
const leaveTimeout = 12 * time.Second

// Run serves until ctx ends, then leaves the bus: no question that was delivered
// to this worker stays without its answer.
func (d *Daemon) Run(ctx context.Context) error {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	followed := make(chan error, 1)
	go func() {
		if d.nodes == nil {
			followed <- nil
			return
		}
		followed <- d.nodes.Run(following)
	}()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		d.keeper.run(ctx)
	}()
	<-ctx.Done()
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	err := d.server.Leave(leaving)
	<-kept
	d.keeper.write() // what the last callers asked for is in it
	err = errors.Join(err, d.close(leaving))
	stop()
	return errors.Join(err, <-followed)
}

// abandon gives up a Daemon that Run will not be called for.
func (d *Daemon) abandon(ctx context.Context) {
	_ = d.close(ctx) // nobody has asked yet
	if d.nodes != nil {
		d.nodes.Close()
	}
}

// close leaves the bus, stops the pool and closes the archive. The nodes are closed by
// the end of their Run.
func (d *Daemon) close(ctx context.Context) error {
	var err error
	for _, l := range d.links {
		l.Close()
	}
	if d.pool != nil {
		err = d.pool.Stop(ctx)
	}
	if d.files != nil { // nobody looks into it any more
		err = errors.Join(err, d.files.Close())
	}
	return err
}
