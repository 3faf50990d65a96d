package edge

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge/overload"
	"github.com/ommer/ommer/schema"
)

// Config is what a Node is made from.
type Config struct {
	HTTPS string      // address for HTTPS and WSS; empty: none
	HTTP  string      // address for the same without TLS; empty: none
	TLS   *tls.Config // for HTTPS

	// ReusePort shares the addresses with other edges that have it: see Node.Listen.
	ReusePort bool

	Keys     *keys.Directory
	Network  string // whose workers Resolver asks; a key may be good for others only
	Resolver schema.Resolver
	Others   []Network // for requests to a Host of theirs; all others are for Network

	Limits   Limits
	Timeouts Timeouts
	Overload overload.Limits

	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
}

// Network is one that requests reach by their Host header.
type Network struct {
	Name     string
	Hosts    []string // in lower case, without ports
	Resolver schema.Resolver
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.HTTPS == "" && c.HTTP == "":
		return c, errors.New("edge: neither HTTPS nor HTTP has an address")
	case c.HTTPS != "" && c.TLS == nil:
		return c, errors.New("edge: HTTPS needs a certificate")
	case c.Logger == nil:
		return c, errors.New("edge: Logger must be set")
	}
	var err error
	if c.Limits, err = c.Limits.withDefaults(); err != nil {
		return c, fmt.Errorf("edge: %w", err)
	}
	if c.Timeouts, err = c.Timeouts.withDefaults(); err != nil {
		return c, fmt.Errorf("edge: %w", err)
	}
	if err := setDefaults(reflect.ValueOf(&c.Overload).Elem()); err != nil {
		return c, fmt.Errorf("edge: --overload-%w", err)
	}
	return c, nil
}
