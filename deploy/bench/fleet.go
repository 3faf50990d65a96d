package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ommer/ommer/deploy/child"
)

// fleet is edges that share their port.
type fleet struct {
	edges  []*child.Process
	admins []string
}

// startFleet starts n edges, in place of the stack's own, with more flags. The
// stack's addresses are theirs from then on.
func (s *stack) startFleet(ctx context.Context, n int, flags ...string) (_ *fleet, err error) {
	if err = s.edge.Stop(); err != nil {
		return nil, err
	}
	s.edge = nil
	addrs, err := child.FreeAddrs(2 + n)
	if err != nil {
		return nil, err
	}
	s.http, s.https = addrs[0], addrs[1]
	f := &fleet{admins: addrs[2:]}
	flags = append(flags, "--reuseport")
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	for i, admin := range f.admins {
		p, err := child.Start(s.dir, fmt.Sprintf("ommer-edge-%d", i+1), s.program("ommer-edge"),
			s.edgeFlags(admin, flags...)...)
		if err != nil {
			return nil, err
		}
		f.edges = append(f.edges, p)
	}
	for i, p := range f.edges {
		if err = p.Wait(ctx, func(ctx context.Context) error { return child.Ready(ctx, f.admins[i]) }); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// stop has all of them leave at the same time.
func (f *fleet) stop() error {
	ended := make(chan error)
	for _, p := range f.edges {
		go func() { ended <- p.Stop() }()
	}
	var errs []error
	for range f.edges {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// cpu is the user and system time of all of them.
func (f *fleet) cpu() (sum time.Duration, err error) {
	for _, p := range f.edges {
		d, err := child.CPU(p.PID())
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// conns is how many connections each of them says it has.
func (f *fleet) conns(ctx context.Context) (list []int, err error) {
	for _, admin := range f.admins {
		m, err := child.ReadMetrics(ctx, admin)
		if err != nil {
			return nil, err
		}
		list = append(list, int(m.Sum("ommer_nio_connections")))
	}
	return list, nil
}
