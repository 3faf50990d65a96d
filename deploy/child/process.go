package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Process is a server that the program has started.
type Process struct {
	name string
	log  string // file with what it wrote
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // of its end, to be read after done
}

// Start runs a program until Stop. What it writes goes to a file in dir.
func Start(dir, name, program string, args ...string) (*Process, error) {
	return StartWith(nil, dir, name, program, args...)
}

// StartWith is Start with something on the standard input, which does not end before
// the process does.
func StartWith(in []byte, dir, name, program string, args ...string) (*Process, error) {
	p := &Process{name: name, log: filepath.Join(dir, name+".log"), cmd: Command(context.Background(), program, args...), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the process has its own
	p.cmd.Stdout, p.cmd.Stderr = out, out
	var told io.WriteCloser
	if in != nil {
		if told, err = p.cmd.StdinPipe(); err != nil {
			return nil, err
		}
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	if told != nil {
		if _, err := told.Write(in); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), p.Stop())
		}
	}
	return p, nil
}

// Command is a program that does not see the settings of an Ommer that the caller
// has in the environment, and on Linux does not outlive the caller.
func Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = attributes()
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "OMMER_") })
	return cmd
}

// PID is the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process. One that has ended takes none, which is no
// error: it may end at any time.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%v to %s: %w", s, p.name, err)
	}
	return nil
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// stopTimeout is how long a process may take to leave before it is killed.
const stopTimeout = 15 * time.Second

// Stop ends the process and waits for that. Nil is fine.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
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

// ReadyTimeout is how long a process may take until it is ready.
const ReadyTimeout = 30 * time.Second

// readyPoll is the pause between two looks at whether it is.
const readyPoll = 50 * time.Millisecond

// Wait returns when ready returns nil. It fails when the process ends instead, and
// then quotes the end of its log.
func (p *Process) Wait(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, ReadyTimeout)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended (%w): %s", p.name, p.err, p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %s", p.name, err, p.Tail())
		case <-time.After(readyPoll):
		}
	}
}

// Tail is the end of what the process wrote.
func (p *Process) Tail() []byte {
	const most = 2 << 10
	b, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(b[max(0, len(b)-most):])
}

// FreeAddrs returns addresses on loopback that nobody listens on at the moment.
func FreeAddrs(n int) (addrs []string, err error) {
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
