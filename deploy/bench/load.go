package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ommer/ommer/deploy/child"
	"github.com/ommer/ommer/deploy/load"
)

// cell is one path under one number of connections, in one round.
type cell struct {
	Path     string        `json:"path"`
	Conns    int           `json:"conns"`
	Requests uint64        `json:"requests"` // answered in the measured time, every answer right
	Took     time.Duration `json:"took_ns"`
	P50      time.Duration `json:"p50_ns"`
	P99      time.Duration `json:"p99_ns"`
	CPU      cpu           `json:"cpu_ns"`
}

// cpu is user and system time by process.
type cpu struct {
	Edge   time.Duration `json:"edge"`
	NATS   time.Duration `json:"nats"`
	Worker time.Duration `json:"worker"`
	Geth   time.Duration `json:"geth"`
	Echo   time.Duration `json:"echo"` // of both yardsticks
	Load   time.Duration `json:"load"` // this program's own
}

// perSecond is the rate of requests.
func (c cell) perSecond() float64 { return float64(c.Requests) / c.Took.Seconds() }

// perRequest is a time's share of one request, in microseconds.
func (c cell) perRequest(d time.Duration) float64 {
	if c.Requests == 0 {
		return 0
	}
	return float64(d.Nanoseconds()) / 1e3 / float64(c.Requests)
}

// ours is the CPU time of Ommer's processes together.
func (c cpu) ours() time.Duration { return c.Edge + c.NATS + c.Worker }

// minus is the time used since an earlier reading.
func (c cpu) minus(b cpu) cpu {
	return cpu{c.Edge - b.Edge, c.NATS - b.NATS, c.Worker - b.Worker, c.Geth - b.Geth, c.Echo - b.Echo, c.Load - b.Load}
}

// cpu reads the CPU time of every process.
func (s *stack) cpu() (c cpu, err error) {
	var errs []error
	var other time.Duration
	for _, r := range []struct {
		p  *child.Process
		to *time.Duration
	}{{s.edge, &c.Edge}, {s.nats, &c.NATS}, {s.worker, &c.Worker}, {s.geth, &c.Geth}, {s.bare, &c.Echo}, {s.netHTTP, &other}} {
		*r.to, err = child.CPU(r.p.PID())
		errs = append(errs, err)
	}
	c.Echo += other
	c.Load, err = child.OwnCPU()
	return c, errors.Join(append(errs, err)...)
}

// warmUp is how long a path is loaded before it is measured.
const warmUp = 500 * time.Millisecond

// measure measures one path.
func (s *stack) measure(ctx context.Context, path string, conns int, duration time.Duration) (cell, error) {
	d, err := newDialer(s.endpoint(path), s.questionsOf(path))
	if err != nil {
		return cell{}, err
	}
	c, err := measure(ctx, d, conns, duration, s.cpu)
	if err != nil {
		return cell{}, fmt.Errorf("%s with %d connections: %w", path, conns, err)
	}
	c.Path, c.Conns = path, conns
	return c, nil
}

// errFailed: a request was not answered, or wrongly.
var errFailed = errors.New("a request failed")

// measure drives a closed loop: each connection has one request outstanding. One
// failure fails it, within a second.
func measure(ctx context.Context, d *load.Dialer, conns int, duration time.Duration, read func() (cpu, error)) (c cell, err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	check := func(failures map[string]load.Failed) {
		for kind, f := range failures {
			fail(fmt.Errorf("%w: %s: %s", errFailed, kind, f.Example))
		}
	}
	var before, after cpu
	var errs [2]error
	r, err := load.Run(ctx, load.Config{
		Dialer: d, Connections: conns, WarmUp: warmUp, Duration: duration,
		Begin:    func() { before, errs[0] = read() },
		End:      func() { after, errs[1] = read() },
		Progress: func(t load.Tick) { check(t.Failed) },
	})
	check(r.Failed)
	check(r.Opening)
	if err := errors.Join(context.Cause(ctx), errs[0], errs[1], err); err != nil {
		return c, err
	}
	p := func(q float64) time.Duration { return time.Duration(r.Latency.ValueAtQuantile(q)) }
	c = cell{Requests: uint64(r.Right), Took: r.Took, P50: p(50), P99: p(99), CPU: after.minus(before)}
	if c.Requests == 0 {
		return c, errors.New("no answer in the measured time")
	}
	return c, nil
}

// pause waits for d, and says whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
