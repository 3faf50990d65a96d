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
	dir     string
	version string // of nats-server
	servers []*child.Process
	urls    []string
	workers []*role
	asker   *role
	killed  func() error // why the roles were ended, nil if they were not
}

// startBusStack returns when every worker has joined the bus.
func startBusStack(ctx context.Context, bin string, servers, workers int) (_ *busStack, err error) {
	program, err := filepath.Abs(filepath.Join(bin, "nats-server"))
	if err != nil {
		return nil, err
	}
	out, err := child.Command(ctx, program, "--version").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("--bin: nats-server --version: %w", err)
	}
	s := &busStack{version: strings.TrimSpace(string(out)), killed: ctx.Err}
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
	var pids []int
	for _, p := range s.servers {
		pids = append(pids, p.PID())
	}
	return s, s.startRoles(ctx, workers, pids)
}

// startServers starts nats-server once, or as a cluster.
func (s *busStack) startServers(ctx context.Context, program string, n int) error {
	addrs, err := child.FreeAddrs(2 * n)
	if err != nil {
		return err
	}
	clients, routes := addrs[:n], addrs[n:]
	for i, addr := range clients {
		args := []string{"GOGC=400", program, "--addr", "127.0.0.1", "--port", port(addr)}
		if n > 1 {
			args = append(args, "--cluster_name", "bench", "--cluster", "nats://"+routes[i], "--routes", "nats://"+routes[0])
		}
		p, err := child.Start(s.dir, fmt.Sprintf("nats-server-%d", i+1), "env", args...)
		if err != nil {
			return err
		}
		s.servers, s.urls = append(s.servers, p), append(s.urls, "nats://"+addr)
	}
	for i, p := range s.servers {
		if err := p.Wait(ctx, func(ctx context.Context) error { return child.Accepts(ctx, clients[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// startRoles starts the workers and the asker. Pids are those of the NATS servers.
func (s *busStack) startRoles(ctx context.Context, workers int, pids []int) error {
	asking := busAsking{Server: s.urls[0], NATS: pids}
	for i := range workers {
		// The asker's own server has none, if there are others, so that every question
		// and answer takes a route: a server prefers its own workers of a queue group.
		what := busWorking{Name: fmt.Sprintf("worker-%d", i+1), Server: s.urls[min(len(s.urls)-1, 1+i%2)]}
		w, err := startRole(ctx, busWorkerCommand, what)
		if err != nil {
			return err
		}
		s.workers = append(s.workers, w)
		var joined busWorked
		if err = s.hear(w, what.Name, &joined); err != nil {
			return err
		}
		asking.Workers, asking.Working = append(asking.Workers, what.Name), append(asking.Working, w.pid())
	}
	var err error
	s.asker, err = startRole(ctx, busAskerCommand, asking)
	return err
}

// hear reads what a process says.
func (s *busStack) hear(r *role, name string, to any) error {
	if err := r.hear.Decode(to); err != nil {
		return fmt.Errorf("%s has ended: %w", name, errors.Join(s.killed(), err))
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
		return busCell{}, errors.Join(s.killed(), err)
	}
	var m busAsked
	if err = s.hear(s.asker, "the asker", &m); err != nil {
		return busCell{}, err
	}
	if m.Problem != "" {
		return busCell{}, fmt.Errorf("%s with %d in flight: %w: %s", order.Way, order.InFlight, errFailed, m.Problem)
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
		if err := w.tell.Encode(busCount); err != nil {
			return nil, errors.Join(s.killed(), err)
		}
		var has busWorked
		if err := s.hear(w, fmt.Sprintf("worker %d", i+1), &has); err != nil {
			return nil, err
		}
		list = append(list, has.Answered)
	}
	return list, nil
}

// stop ends everything and removes its files.
func (s *busStack) stop() error {
	var errs []error
	roles := s.workers
	if s.asker != nil {
		roles = append([]*role{s.asker}, roles...)
	}
	for _, r := range roles {
		if err := r.stop(); err != nil && s.killed() == nil {
			errs = append(errs, err)
		}
	}
	for _, p := range s.servers {
		errs = append(errs, p.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
