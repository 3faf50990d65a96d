package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// process is a server that the program has started.
type process struct {
	name string
	log  string // file with what it wrote
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // of its end, to be read after done
}

// start runs a program until stop. What it writes goes to a file in dir.
func start(dir, name, program string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), cmd: command(context.Background(), program, args...), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the process has its own
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// command is a program that does not see the settings of an Ommer that the caller
// has in the environment.
func command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = childAttr()
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "OMMER_") })
	return cmd
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stopTimeout is how long a process may take to leave before it is killed.
const stopTimeout = 15 * time.Second

// stop ends the process and waits for that. Nil is fine.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		err := p.cmd.Process.Kill()
		<-p.done
		return errors.Join(fmt.Errorf("%s did not stop within %v and was killed", p.name, stopTimeout), err)
	}
}

// How long a process may take until it is ready, and how often it is looked at.
const (
	readyTimeout = 30 * time.Second
	readyPoll    = 50 * time.Millisecond
)

// wait returns when ready returns nil. It fails when the process ends instead, and
// then quotes the end of its log.
func (p *process) wait(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended (%w): %s", p.name, p.err, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %s", p.name, err, p.tail())
		case <-time.After(readyPoll):
		}
	}
}

// tail is the end of what the process wrote.
func (p *process) tail() []byte {
	const most = 2 << 10
	b, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(b[max(0, len(b)-most):])
}

// freeAddrs returns addresses on loopback that nobody listens on at the moment.
func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		// All are held until the last one is found, so that no two are the same.
		ln, lerr := net.Listen("tcp", "127.0.0.1:0")
		if lerr != nil {
			return nil, errors.Join(err, lerr)
		}
		defer func() { err = errors.Join(err, ln.Close()) }()
		addrs = append(addrs, ln.Addr().String())
	}
	return addrs, nil
}
