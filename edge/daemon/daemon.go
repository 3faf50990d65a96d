package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/bus/networks"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/edge/certs"
)

// Config is what a Daemon is made from.
type Config struct {
	Options
	Certs    *certs.Store       // for HTTPS
	Name     string             // of the node: one token of letters, digits, - and _
	Networks []networks.Network // one at least
	Zone     process.Token      // empty: workers anywhere are alike
	Bus      bus.Flags
	DevKey   string // a key that is accepted as it is, beside those of the registry
	Log      *slog.Logger
	Admin    *process.Admin
}

// Daemon is an edge and its ways to the bus.
type Daemon struct {
	links   []*bus.Link
	keys    *keys.Directory
	clients []*bus.Client // one per network, over the same links
	probes  []*probe      // in the same order
	node    *edge.Node
	certs   *certs.Store // nil without HTTPS
	log     *slog.Logger

	reusePort bool        // the node listens when it is ready, not before
	listening atomic.Bool // for readiness

	once  sync.Once
	ready chan struct{} // closed by it, when lookups are answered
}

// links is how many connections an edge has to the bus, so that losing one server
// costs a resend and not a wait.
const links = 2

// New binds the listeners and begins to connect. It does not wait for the bus:
// until that is there, readiness says what is missing. With ReusePort nothing is
// bound before a lookup was answered: those who share the address answer meanwhile,
// and this edge, which knows no keys yet, would refuse what they serve.
func New(cfg Config) (_ *Daemon, err error) {
	d := &Daemon{certs: cfg.Certs, log: cfg.Log, reusePort: cfg.ReusePort, ready: make(chan struct{})}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.links, err = bus.DialApart(cfg.Bus.Link(cfg.Name, cfg.Log), links); err != nil {
		return nil, process.Usage{Err: err} // the configuration is the only thing that can be wrong
	}
	var node atomic.Pointer[edge.Node] // the directory announces before there is one
	d.keys, err = keys.NewDirectory(keys.DirectoryConfig{
		Link: d.links[0], Logger: cfg.Log, Registerer: cfg.Admin.Registry,
		OnChange: func(*keys.Entry) {
			if n := node.Load(); n != nil {
				n.KeysChanged()
			}
		},
	})
	if err != nil {
		return nil, err
	}
	if cfg.DevKey != "" {
		if _, err := d.keys.AddStatic(cfg.DevKey); err != nil {
			return nil, fmt.Errorf("--dev-key: %w", err)
		}
	}
	var asked []edge.Network
	for _, n := range cfg.Networks {
		client, err := d.join(cfg, n.Name)
		if err != nil {
			return nil, err
		}
		asked = append(asked, edge.Network{Name: n.Name, Hosts: n.Hosts, Resolver: client})
	}
	var config *tls.Config
	if d.certs != nil {
		config = d.certs.TLS()
	}
	d.node, err = edge.New(edge.Config{
		HTTPS: string(cfg.HTTPS), HTTP: string(cfg.HTTP), TLS: config, ReusePort: cfg.ReusePort,
		Keys: d.keys, Network: asked[0].Name, Resolver: asked[0].Resolver, Others: asked[1:],
		Limits: cfg.Limits, Timeouts: cfg.Timeouts, Overload: cfg.Overload,
		Logger: cfg.Log, Registerer: cfg.Admin.Registry,
	})
	if err != nil {
		return nil, err
	}
	node.Store(d.node)
	cfg.Admin.Check("nats", d.linked)
	cfg.Admin.Check("keys", d.loaded)
	cfg.Admin.Check("overload", d.node.Overloaded)
	if cfg.ReusePort {
		cfg.Admin.Check("listeners", d.listens)
	}
	return d, nil
}

// join makes the client that asks the workers of a network, and has its lookups tried.
func (d *Daemon) join(cfg Config, network string) (*bus.Client, error) {
	scope, log := cfg.Admin.Scope(network), cfg.Log
	if len(cfg.Networks) > 1 {
		log = log.With("network", network)
	}
	client, err := bus.NewClient(bus.ClientConfig{
		Links: d.links, Network: network, Zone: string(cfg.Zone), Timeout: cfg.Timeouts.Lookup,
		Logger: log, Registerer: scope.Registerer,
	})
	if err != nil {
		return nil, err
	}
	p := newProbe(client, d.links)
	d.clients, d.probes = append(d.clients, client), append(d.probes, p)
	scope.Check("lookup", p.ready)
	return client, nil
}

// Node is the edge itself.
func (d *Daemon) Node() *edge.Node { return d.node }

// WaitReady waits until a lookup was answered, and each network's was or could not be;
// false when ctx ended first.
func (d *Daemon) WaitReady(ctx context.Context) bool {
	select {
	case <-d.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// Reload has the certificates and ticket keys read again.
func (d *Daemon) Reload() {
	if d.certs != nil {
		d.certs.Reload()
	}
}

// Run serves until ctx ends, drains the connections and leaves the bus.
func (d *Daemon) Run(ctx context.Context) error {
	beside, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, p := range d.probes {
		wg.Go(func() { p.run(beside, d.tried) })
	}
	if d.certs != nil {
		wg.Go(func() { _ = d.certs.Run(beside) }) // ends with beside, always well
	}
	err := d.serve(ctx)
	stop()
	wg.Wait()
	d.close()
	return err
}

// serve runs the node; one that shares its address first waits until it is ready.
func (d *Daemon) serve(ctx context.Context) error {
	if !d.reusePort {
		return d.node.Run(ctx)
	}
	if !d.WaitReady(ctx) {
		d.node.Close()
		return nil
	}
	if err := d.node.Listen(); err != nil {
		d.node.Close()
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w (by a process without --reuseport, or of another user)", err)
		}
		return err
	}
	d.listening.Store(true)
	d.log.Info("edge listens", "https", process.AddrString(d.node.HTTPS()), "http", process.AddrString(d.node.HTTP()))
	return d.node.Run(ctx)
}

// tried looks whether those can go on who wait for the edge to be ready.
func (d *Daemon) tried() {
	answered := slices.ContainsFunc(d.probes, func(p *probe) bool { return p.answered.Load() })
	open := slices.ContainsFunc(d.probes, func(p *probe) bool { return !p.tried.Load() })
	if answered && !open && d.loaded() == nil {
		d.once.Do(func() { close(d.ready) })
	}
}

func (d *Daemon) close() {
	for _, c := range d.clients {
		c.Close()
	}
	if d.keys != nil {
		d.keys.Close()
	}
	for _, l := range d.links {
		l.Close()
	}
}

// linked is nil while at least one link is up.
func (d *Daemon) linked() error {
	var missing string
	for _, l := range d.links {
		if missing = l.Missing(); missing == "" {
			return nil
		}
	}
	return errors.New(missing)
}

func (d *Daemon) loaded() error {
	if missing := d.keys.Missing(); missing != "" {
		return errors.New(missing)
	}
	return nil
}

func (d *Daemon) listens() error {
	if !d.listening.Load() {
		return errors.New("not bound before a lookup was answered")
	}
	return nil
}
