package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ommer/ommer/bus/networks"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/workers"
	"github.com/ommer/ommer/workers/upstream"
)

// Workers are those of a process, one per network. They have everything of their own:
// links, nodes, archive, a part of the cache. On the bus they share their name.
type Workers []*Daemon

// NewWorkers makes a worker for each network that has something to answer from; cfg's own
// Network is not looked at. A network without is left to other processes if elsewhere says
// so, and a mistake if not.
func NewWorkers(cfg Config, list []networks.Network, elsewhere bool) (all Workers, err error) {
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	shares := int64(0)
	for _, n := range list {
		own, err := cfg.Options.of(n)
		switch {
		case err != nil:
			return all, process.Usage{Err: err}
		case len(own.Upstream)+len(own.Archive) > 0:
			shares++
		case !elsewhere && n.Entry == "":
			return all, process.Usage{Err: errors.New("--upstream URL,... is needed, or --archive PATH,...; for example --upstream http://127.0.0.1:8545")}
		case !elsewhere:
			return all, process.Usage{Err: fmt.Errorf("--networks: %s: %s needs upstreams or archive to answer from", n.Entry, n.Name)}
		}
	}
	for _, n := range list {
		own := cfg
		if own.Options, err = cfg.Options.of(n); err != nil {
			return all, err
		}
		if len(own.Upstream)+len(own.Archive) == 0 {
			continue
		}
		own.Network, own.CacheBytes = n.Network, max(cmp.Or(cfg.CacheBytes, workers.DefaultCacheBytes)/shares, 1)
		if len(list) > 1 {
			own.Log = cfg.Log.With("network", n.Name)
		}
		d, err := New(own)
		if err != nil && n.Entry != "" {
			return all, wrongEntry(n, err)
		}
		if err != nil {
			return all, err
		}
		all = append(all, d)
	}
	return all, nil
}

// of returns the options for a network: those of its entry in a list, where it has one.
func (o Options) of(n networks.Network) (Options, error) {
	if n.Entry == "" {
		return o, nil
	}
	if len(o.Upstream)+len(o.Archive) > 0 {
		return o, fmt.Errorf("--upstream and --archive are for one network: with --networks, %s has its own upstreams and archive", n.Entry)
	}
	if o.Snapshot != "" {
		o.Snapshot += "." + n.Name
	}
	o.Upstream, o.Archive = make([]upstream.URL, len(n.Upstreams)), n.Archive
	for i, url := range n.Upstreams {
		if err := o.Upstream[i].UnmarshalText([]byte(url)); err != nil {
			return o, fmt.Errorf("--networks: %s.upstreams[%d]: %w", n.Entry, i, err)
		}
	}
	return o, nil
}

// wrongEntry says of a mistake in which entry of the list it is: what New knows are the
// flags.
func wrongEntry(n networks.Network, err error) error {
	var usage process.Usage
	if !errors.As(err, &usage) {
		return err
	}
	if text, ok := strings.CutPrefix(err.Error(), "--archive: "); ok {
		return process.Usage{Err: fmt.Errorf("--networks: %s.archive: %s", n.Entry, text)}
	}
	return err
}

// Run runs all of them until ctx ends or one fails.
func (w Workers) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(w))
	for _, d := range w {
		go func() {
			ended <- d.Run(ctx)
			stop() // a worker that ends by itself ends the others
		}()
	}
	var err error
	for range w {
		err = errors.Join(err, <-ended)
	}
	return err
}

// close gives up workers that Run will not be called for.
func (w Workers) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, d := range w {
		_ = d.server.Leave(ctx) // nobody has asked yet
		d.abandon(ctx)
	}
}

// closeTimeout is how long it may take to leave a bus on which nothing was done.
const closeTimeout = time.Second
