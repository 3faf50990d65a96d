package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// fleet is edges that share their port.
type fleet struct {
	edges  []*process
	admins []string
}

// startFleet starts n edges, in place of the stack's own, with more flags. The
// stack's addresses are theirs from then on.
func (s *stack) startFleet(ctx context.Context, n int, flags ...string) (_ *fleet, err error) {
	if err = s.edge.stop(); err != nil {
		return nil, err
	}
	s.edge = nil
	addrs, err := freeAddrs(2 + n)
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
		p, err := start(s.dir, fmt.Sprintf("ommer-edge-%d", i+1), s.program("ommer-edge"),
			s.edgeFlags(admin, flags...)...)
		if err != nil {
			return nil, err
		}
		f.edges = append(f.edges, p)
	}
	for i, p := range f.edges {
		if err = p.wait(ctx, func(ctx context.Context) error { return ready(ctx, f.admins[i]) }); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// stop has all of them leave at the same time.
func (f *fleet) stop() error {
	ended := make(chan error)
	for _, p := range f.edges {
		go func() { ended <- p.stop() }()
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
		d, err := cpuOf(p.pid())
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
		n, err := gauge(ctx, admin, "ommer_nio_connections")
		if err != nil {
			return nil, err
		}
		list = append(list, int(n))
	}
	return list, nil
}

// errGauge: a process has no such figure.
var errGauge = errors.New("no such metric")

// gauge asks an admin listener for a metric, the sum of its series.
func gauge(ctx context.Context, admin, name string) (sum float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	found := false
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		series, value, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		if metric, _, _ := strings.Cut(string(series), "{"); metric != name {
			continue
		}
		n, err := strconv.ParseFloat(string(value), 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum, found = sum+n, true
	}
	if err = lines.Err(); err == nil && !found {
		err = fmt.Errorf("%s: %w", name, errGauge)
	}
	return sum, err
}
