package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ommer/ommer/deploy/load"
)

// crowdedKind is what connections of one kind cost the machine.
type crowdedKind struct {
	Kind     string        `json:"kind"`
	Conns    int           `json:"conns"`
	Opening  time.Duration `json:"opening_ns"` // the first exchange of each included
	OpenCPU  time.Duration `json:"opening_cpu_ns"`
	Spread   []int         `json:"spread"` // connections of each edge
	Before   int64         `json:"before_bytes"`
	After    int64         `json:"after_bytes"` // resident memory of all edges
	Settled  bool          `json:"settled"`
	Clients  int64         `json:"clients_bytes"` // resident memory of the clients' processes
	Kernel   kernel        `json:"kernel"`        // what came to the whole machine
	Objects  []perConn     `json:"objects"`
	Answered int           `json:"answered"`
	Failed   int           `json:"failed"`
	Problem  string        `json:"problem,omitempty"`

	// Over a time in which nothing but pings was sent.
	Quiet    time.Duration `json:"quiet_ns,omitempty"`
	QuietCPU time.Duration `json:"quiet_cpu_ns,omitempty"` // of all edges
	Pings    int           `json:"pings,omitempty"`
}

// The connections of one source address are few enough that each finds a free port
// fast, in a range of 28,000 that those of the kind before may still occupy.
const connsPerSource = 7000

// quietPings is how many pings each connection gets while their cost is measured.
const quietPings = 2

// crowded measures one kind, the nth of the run, with edges of its own.
func (s *stack) crowded(ctx context.Context, c connectionsConfig, k kind, nth int, progress func(string, ...any)) (m crowdedKind, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectionsAtMost)
	defer cancel()
	m = crowdedKind{Kind: k.name, Conns: c.conns}
	const untouched = "30m" // longer than this takes
	ping := untouched
	if k.pings {
		ping = c.ping.String()
	}
	f, err := s.startFleet(ctx, c.edges, "--timeout-idle", untouched, "--timeout-ping", ping, "--timeout-handshake", "1m",
		"--limit-conns", fmt.Sprint(c.files))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	if err = s.exercise(ctx, k.path, c.edges); err != nil {
		return m, err
	}
	readings := int(c.rest / settlePoll)
	var before, after bool
	if m.Before, before, err = settle(ctx, readings, f.edges...); err != nil {
		return m, err
	}
	kernelBefore, err := readKernel()
	if err != nil {
		return m, err
	}
	cpuBefore, err := f.cpu()
	if err != nil {
		return m, err
	}
	progress("%s: opening %d connections to %d edges", k.name, c.conns, c.edges)
	began := time.Now()
	crowd, err := startCrowd(ctx, s.shares(c, k, nth), func(n int) {
		progress("%s: %6d of %d open after %.0f s", k.name, n, c.conns, time.Since(began).Seconds())
	})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, crowd.stop()) }()
	m.Opening, m.Answered = time.Since(began), c.conns // it fails at the first wrong answer
	cpuOpened, err := f.cpu()
	if err != nil {
		return m, err
	}
	m.OpenCPU = cpuOpened - cpuBefore
	if m.After, after, err = settle(ctx, readings, f.edges...); err != nil {
		return m, err
	}
	m.Settled = before && after
	kernelAfter, err := readKernel()
	if err != nil {
		return m, err
	}
	m.Kernel = kernelAfter.minus(kernelBefore).withoutListings()
	m.Objects = m.Kernel.objectsPerConn(c.conns)
	if m.Clients, err = crowd.rss(); err != nil {
		return m, err
	}
	if m.Spread, err = f.conns(ctx); err != nil {
		return m, err
	}
	if k.pings {
		progress("%s: pings for %v", k.name, quietPings*c.ping)
		if err = m.quiet(ctx, f, crowd, quietPings*c.ping); err != nil {
			return m, err
		}
	}
	progress("%s: asking on every connection", k.name)
	h, err := crowd.do(ctx, holdAsk)
	if err != nil {
		return m, err
	}
	m.Answered, m.Failed, m.Problem = m.Answered+h.Answered, h.Failed, h.Problem
	return m, nil
}

// exercise has the edges answer what they will be asked, so that what they allocate
// once is not put down to the connections.
func (s *stack) exercise(ctx context.Context, path string, edges int) error {
	d, err := newDialer(s.endpoint(path), s.questions)
	if err != nil {
		return err
	}
	conns, err := d.DialAll(ctx, exerciseConns*edges, func(c *load.Conn) error {
		for i := range s.questions {
			if _, err := c.Ask(i); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, load.CloseAll(conns))
}

// shares divides the connections among processes, each with source addresses of its
// own: 127.0.0.0/8 is all loopback on Linux.
func (s *stack) shares(c connectionsConfig, k kind, nth int) (list []holding) {
	n := processes(c.conns, c.files)
	for i := range n {
		h := holding{Endpoint: s.endpoint(k.path), Questions: s.questions, Conns: part(c.conns, i, n), Pings: k.pings}
		for j := range processes(h.Conns, connsPerSource) {
			h.Sources = append(h.Sources, net.IPv4(127, byte(nth+1), byte(i), byte(j+1)))
		}
		list = append(list, h)
	}
	return list
}

// quiet measures what pings cost the edges.
func (m *crowdedKind) quiet(ctx context.Context, f *fleet, c *crowd, d time.Duration) error {
	first, err := c.do(ctx, holdCount)
	if err != nil {
		return err
	}
	began := time.Now()
	before, err := f.cpu()
	if err != nil {
		return err
	}
	if !pause(ctx, d) {
		return ctx.Err()
	}
	after, err := f.cpu()
	if err != nil {
		return err
	}
	m.Quiet, m.QuietCPU = time.Since(began), after-before
	last, err := c.do(ctx, holdCount)
	m.Pings = last.Pings - first.Pings
	return err
}
