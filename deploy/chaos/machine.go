package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/ommer/ommer/deploy/child"
)

// role is what a machine is there for.
type role string

const (
	edge     role = "edge"
	worker   role = "worker"
	server   role = "server" // of NATS
	upstream role = "upstream"
)

// machine is a host and the one program that runs on it.
type machine struct {
	host
	role    role
	number  int // among those of its role, from 0
	dir     string
	command []string
	health  string // path of a URL that says 200 when it is well
	port    int    // where that is

	starts  int
	process *child.Process
	down    bool // it was ended on purpose
}

// start starts the program. Each time its log is a file of its own.
func (m *machine) start() (err error) {
	m.starts++
	m.process, err = child.Start(m.dir, fmt.Sprintf("%s.%d", m.name, m.starts), "ip", m.host.run(m.command[0], m.command[1:]...)...)
	m.down = false
	return err
}

// end sends a signal that ends the program.
func (m *machine) end(s syscall.Signal) error {
	m.down = true
	return m.process.Signal(s)
}

// leaveTime bounds how long a program may take to end after it was asked to. A NATS
// server in lame duck mode takes at least 30 seconds by its own rules.
const leaveTime = 60 * time.Second

// ended waits until the program has ended.
func (m *machine) ended(ctx context.Context) error {
	select {
	case <-m.process.Ended():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(leaveTime):
		return fmt.Errorf("%s was asked to end and still runs after %v", m.name, leaveTime)
	}
}

// crashed says whether the program has ended by itself.
func (m *machine) crashed() error {
	if m.down || m.process == nil {
		return nil
	}
	select {
	case <-m.process.Ended():
		return fmt.Errorf("%s ended by itself: %s", m.name, m.process.Tail())
	default:
		return nil
	}
}

// probeTime bounds a look at one machine.
const probeTime = time.Second

// prober asks machines how they are. It keeps no connection: one from before a fault
// says nothing of the machine after it.
var prober = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: probeTime}

// well says whether the program is ready to do what it is there for: nil if so.
func (m *machine) well(ctx context.Context) error {
	_, err := m.get(ctx, m.health)
	return err
}

// get asks the program for what it tells of itself.
func (m *machine) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.at(m.port)+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := prober.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s says %s", m.name, path, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// stop ends the program, a stopped one too.
func (m *machine) stop() error {
	if m.process == nil {
		return nil
	}
	m.down = true
	if err := m.process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	return m.process.Stop()
}
