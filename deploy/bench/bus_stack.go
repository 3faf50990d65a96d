package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ommer/ommer/deploy/child"
)

// busStack is the processes of a measurement of the bus.
type busStack struct {
	ctx     context.Context // its end kills those that this program is
	dir     string
	version string // of nats-server
	servers []*child.Process
	urls    []string
	workers []*role
	asker   *role
}

func startBusStack(ctx context.Context, bin string, servers, workers int) (_ *busStack, err error) {
	program, err := filepath.Abs(filepath.Join(bin, "nats-server"))
	if err != nil {
		return nil, err
	}
	s := &busStack{ctx: ctx}
	out, err := child.Command(ctx, program, "--version").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("--bin: nats-server --version: %w", err)
	}
	s.version = strings.TrimSpace(string(out))
	if s.dir, err = os.MkdirTemp("", "ommer-bench-bus-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if err = s.startServers(ctx, program, servers); err != nil {
		return nil, err
	}
	asking := busAsking{Server: s.urls[0]}
	for i := range workers {
		// The asker's own server has none, if there are others, so that every question
		// and answer takes a route: a server prefers its own workers of a queue group.
		w := busWorking{Name: fmt.Sprintf("worker-%d", i+1), Server: s.urls[min(servers-1, 1+i%2)]}
		if err = s.startWorker(w); err != nil {
			return nil, err
		}
		asking.Workers = append(asking.Workers, w.Name)
		asking.Working = append(asking.Working, s.workers[i].pid())
	}
	for _, p := range s.servers {
		asking.NATS = append(asking.NATS, p.PID())
	}
	s.asker, err = startRole(ctx, busAskerCommand, asking)
	return s, err
}

// startServers starts nats-server once, or as a cluster.
func (s *busStack) startServers(ctx context.Context, program string, n int) error {
	addrs, err := child.FreeAddrs(2 * n)
	if err != nil {
		return err
	}
	for i := range n {
		addr, route := addrs[i], "nats://"+addrs[n+i]
		args := []string{"GOGC=400", program, "--addr", "127.0.0.1", "--port", port(addr)}
		if n > 1 {
			args = append(args, "--server_name", fmt.Sprintf("nats-%d", i+1), "--cluster_name", "bench", "--cluster", route, "--routes", "nats://"+addrs[n])
		}
		p, err := child.Start(s.dir, fmt.Sprintf("nats-server-%d", i+1), "env", args...)
		if err != nil {
			return err
		}
		s.servers, s.urls = append(s.servers, p), append(s.urls, "nats://"+addr)
	}
	for i, p := range s.servers {
		if err := p.Wait(ctx, func(ctx context.Context) error { return child.Accepts(ctx, addrs[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// startWorker returns when the worker has joined the bus.
func (s *busStack) startWorker(what busWorking) error {
	w, err := startRole(s.ctx, busWorkerCommand, what)
	if err != nil {
		return err
	}
	s.workers = append(s.workers, w)
	var joined busWorked
	return s.hear(w, what.Name, &joined)
}

// hear reads what a process says.
func (s *busStack) hear(r *role, name string, to any) error {
	if err := r.hear.Decode(to); err != nil {
		if s.ctx.Err() != nil {
			return s.ctx.Err() // that it ended says nothing more
		}
		return fmt.Errorf("%s has ended: %w", name, err)
	}
	return nil
}

// measure measures one way.
func (s *busStack) measure(order busOrder) (busCell, error) {
	before, err := s.answered()
	if err != nil {
		return busCell{}, err
	}
	if err = s.asker.tell.Encode(order); err != nil {
		return busCell{}, errors.Join(s.ctx.Err(), err)
	}
	var m busAsked
	if err = s.hear(s.asker, "the asker", &m); err != nil {
		return busCell{}, err
	}
	if m.Problem != "" {
		return busCell{}, fmt.Errorf("%s with %d in flight: %s", order.Way, order.InFlight, m.Problem)
	}
	after, err := s.answered()
	for i := range after {
		m.Cell.Answered = append(m.Cell.Answered, after[i]-before[i])
	}
	return m.Cell, err
}

// answered is how many questions each worker has answered so far.
func (s *busStack) answered() (list []uint64, err error) {
	for i, w := range s.workers {
		var has busWorked
		if err := w.tell.Encode("count"); err != nil {
			return nil, errors.Join(s.ctx.Err(), err)
		}
		if err := s.hear(w, fmt.Sprintf("worker %d", i+1), &has); err != nil {
			return nil, err
		}
		list = append(list, has.Answered)
	}
	return list, nil
}

// stop ends everything and removes its files. That a process was killed by the end of
// ctx is no error of its own.
func (s *busStack) stop() error {
	var errs []error
	for _, r := range append([]*role{s.asker}, s.workers...) {
		if r == nil {
			continue
		}
		if err := r.stop(); err != nil && s.ctx.Err() == nil {
			errs = append(errs, err)
		}
	}
	for _, p := range s.servers {
		errs = append(errs, p.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
