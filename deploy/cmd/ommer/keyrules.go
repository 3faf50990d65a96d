package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	registry "github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/bus/process"
)

// keyRules are the flags of a key's settings. What is not given is nil, what is
// given empty lifts the restriction. The environment gives nothing: it would change
// keys that nobody meant.
type keyRules struct {
	Rate     *number `env:"-" placeholder:"N" help:"Calls per second that each edge lets through. Default: any number."`
	Burst    *number `env:"-" placeholder:"N" help:"Calls that each edge lets through at once after a pause. Default: as many as --rate."`
	Origins  *list   `env:"-" placeholder:"ORIGIN,..." help:"Web pages that may use the key, for example https://app.example,https://*.app.example. Whoever names no origin, as programs do, is refused then. Default: everybody."`
	Networks *list   `env:"-" placeholder:"NAME,..." help:"Networks on which the key is good, as edges name them with --network or --networks. Default: all."`
	Methods  *list   `env:"-" placeholder:"NAME,..." help:"Methods that may be called, beside rpc.discover. Default: all."`
	MaxConns *number `env:"-" placeholder:"N" help:"WebSockets that may be open at a time on each edge. A lower number closes none that is open. Default: the edge's --limit-conns-per-key."`
}

// change makes what was given part of the settings.
func (k *keyRules) change(s *registry.Settings) {
	if k.Rate != nil {
		if s.Rate = int(*k.Rate); s.Rate == 0 {
			s.Burst = 0 // it means nothing without a rate
		}
	}
	if k.Burst != nil {
		s.Burst = int(*k.Burst)
	}
	if k.MaxConns != nil {
		s.MaxConns = int(*k.MaxConns)
	}
	for _, l := range []struct {
		given *list
		to    *[]string
	}{{k.Origins, &s.Origins}, {k.Networks, &s.Networks}, {k.Methods, &s.Methods}} {
		if l.given != nil {
			*l.to = *l.given
		}
	}
}

// wrongRules makes a mistake in the settings one of the command line.
func wrongRules(err error) error {
	if e, ok := errors.AsType[*registry.SettingError](err); ok {
		return process.Usage{Err: fmt.Errorf("--%w", e)}
	}
	return err
}

// number is a count as a flag. Empty is 0, which cannot be given as such: who writes
// it wants nothing to pass, and would get no limit at all.
type number int

// UnmarshalText reads the number.
func (n *number) UnmarshalText(text []byte) error {
	v, err := strconv.Atoi(cmp.Or(string(text), "0"))
	switch {
	case err != nil:
		return errors.New(strconv.Quote(string(text)) + " is no number")
	case v == 0 && len(text) > 0:
		return errors.New("0 would let nothing through: revoke the key for that, or give \"\" for no limit")
	}
	*n = number(v)
	return nil
}

// list is a comma-separated list as a flag. Empty has no members.
type list []string

// UnmarshalText splits the list.
func (l *list) UnmarshalText(text []byte) error {
	*l = nil
	if len(text) > 0 {
		*l = strings.Split(string(text), ",")
	}
	return nil
}

type setKey struct {
	keyBus   `embed:""`
	Key      string `arg:"" name:"id-or-name" help:"ID of the key, or its name."`
	keyRules `embed:"" group:"What the key may do (an empty value lifts a restriction, what is not given stays):"`
}

// Run implements the command.
func (k *setKey) Run(std streams) error {
	if k.keyRules == (keyRules{}) {
		return process.Usage{Err: errors.New("nothing to change: give --rate, --burst, --origins, --networks, --methods or --max-conns")}
	}
	return k.with(func(ctx context.Context, r *registry.Registry) error {
		rec, err := r.Set(ctx, k.Key, k.change)
		if err != nil {
			return wrongRules(err)
		}
		fmt.Fprintf(std.err, "Changed key %s (%q).\n", rec.ID, rec.Name)
		return printKey(std.out, rec)
	})
}

// printRules writes the restrictions of a key as rows of a table.
func printRules(w io.Writer, s registry.Settings) {
	if s.Unrestricted() {
		fmt.Fprintln(w, "Settings\tnone, everything is allowed")
	}
	if s.Rate > 0 {
		fmt.Fprintf(w, "Rate\t%d calls/s on each edge, %d at once\n", s.Rate, cmp.Or(s.Burst, s.Rate))
	}
	if s.MaxConns > 0 {
		fmt.Fprintf(w, "WebSockets\t%d open on each edge\n", s.MaxConns)
	}
	for _, l := range []struct {
		name  string
		items []string
	}{{"Origins", s.Origins}, {"Networks", s.Networks}, {"Methods", s.Methods}} {
		if len(l.items) > 0 {
			fmt.Fprintf(w, "%s\t%s\n", l.name, strings.Join(l.items, ", "))
		}
	}
}
