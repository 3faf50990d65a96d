package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/deploy/child"
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
	return cpu{c.Edge - b.Edge, c.NATS - b.NATS, c.Worker - b.Worker, c.Geth - b.Geth, c.Load - b.Load}
}

// cpu reads the CPU time of every process.
func (s *stack) cpu() (c cpu, err error) {
	var errs []error
	for _, r := range []struct {
		p  *child.Process
		to *time.Duration
	}{{s.edge, &c.Edge}, {s.nats, &c.NATS}, {s.worker, &c.Worker}, {s.geth, &c.Geth}} {
		*r.to, err = child.CPU(r.p.PID())
		errs = append(errs, err)
	}
	c.Load, err = child.OwnCPU()
	return c, errors.Join(append(errs, err)...)
}

// How long a path is loaded before it is measured, and how long everything else that
// a cell does may take: opening the connections and the last answers.
const (
	warmUp    = 500 * time.Millisecond
	cellSlack = time.Minute
)

// measure measures one path.
func (s *stack) measure(ctx context.Context, path string, conns int, duration time.Duration) (cell, error) {
	d, err := newDialer(s.endpoint(path), s.questions)
	if err != nil {
		return cell{}, err
	}
	l := load{dialer: d, conns: conns, cpu: s.cpu}
	c, err := l.run(ctx, duration)
	if err != nil {
		return cell{}, fmt.Errorf("%s with %d connections: %w", path, conns, err)
	}
	c.Path, c.Conns = path, conns
	return c, nil
}

// load is a closed loop: each connection has one request outstanding. It runs once.
type load struct {
	dialer *dialer
	conns  int
	cpu    func() (cpu, error)

	counted atomic.Pointer[histogram] // nil: nothing is measured at the moment
	stop    atomic.Bool
}

// run opens the connections, drives them, and closes them. One wrong answer fails it.
func (l *load) run(ctx context.Context, duration time.Duration) (c cell, err error) {
	clients, err := l.dialer.dialAll(ctx, l.conns, time.Now().Add(duration+cellSlack), l.dialer.try)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, closeAll(clients)) }()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var driving sync.WaitGroup
	for i, one := range clients {
		driving.Go(func() {
			if err := l.drive(one, i); err != nil {
				fail(err)
			}
		})
	}
	var latency histogram
	var before, after cpu
	var began time.Time
	var errs [2]error
	if pause(ctx, warmUp) {
		before, errs[0] = l.cpu()
		began = time.Now()
		l.counted.Store(&latency)
	}
	if pause(ctx, duration) {
		l.counted.Store(nil)
		c.Took = time.Since(began)
		after, errs[1] = l.cpu()
	}
	l.stop.Store(true)
	driving.Wait()
	if err := errors.Join(context.Cause(ctx), errs[0], errs[1]); err != nil {
		return c, err
	}
	c.CPU = after.minus(before)
	c.Requests, c.P50, c.P99 = latency.count(), latency.percentile(50), latency.percentile(99)
	if c.Requests == 0 {
		return c, errors.New("no answer in the measured time")
	}
	return c, nil
}

// drive asks on one connection until it is stopped. Connections begin at different
// questions.
func (l *load) drive(c client, start int) error {
	questions := l.dialer.questions
	i := start % len(questions)
	last := time.Now()
	for !l.stop.Load() {
		answer, err := c.ask(i)
		if err != nil {
			return err
		}
		if err = questions[i].check(answer); err != nil {
			return err
		}
		now := time.Now()
		if h := l.counted.Load(); h != nil {
			h.add(now.Sub(last))
		}
		last = now
		if i++; i == len(questions) {
			i = 0
		}
	}
	return nil
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
