//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// soon bounds a wait for what takes milliseconds on an idle machine.
	soon = 20 * time.Second
	// pollEvery is the pause between two looks at a condition.
	pollEvery = 10 * time.Millisecond
	// stopTime is how long a process may take to stop, --stop-after included.
	stopTime = 25 * time.Second
	// tailLines is how much of a log a failed test prints.
	tailLines = 30
)

// program returns the path of one of the binaries under test.
func program(tb testing.TB, name string) string {
	tb.Helper()
	dir := os.Getenv("OMMER_BIN")
	if dir == "" {
		tb.Fatal("OMMER_BIN is not set: it names the folder with ommer, ommer-edge, ommer-worker, nats-server and geth. `make e2e` builds them and sets it")
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("OMMER_BIN: %v; `make e2e` builds it", err)
	}
	return path
}

// environment is what processes are given: nothing of the caller's OMMER_
// variables, and a home of their own.
func environment(tb testing.TB) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tb.TempDir(), "TZ=UTC"}
}

// process is a running program. Its output is kept in files.
type process struct {
	tb             testing.TB
	name           string
	cmd            *exec.Cmd
	stdout, stderr string        // paths
	exited         chan struct{} // closed when it has ended
	code           int           // of its exit, -1 for a signal; after exited
}

// start runs a program until the test ends.
func start(tb testing.TB, name, binary string, args ...string) *process {
	tb.Helper()
	return startWith(tb, nil, name, binary, args...)
}

// startWith is start with something more in the environment.
func startWith(tb testing.TB, env []string, name, binary string, args ...string) *process {
	tb.Helper()
	dir := tb.TempDir()
	p := &process{
		tb: tb, name: name, exited: make(chan struct{}),
		stdout: filepath.Join(dir, name+".out"), stderr: filepath.Join(dir, name+".err"),
	}
	out, err := os.Create(p.stdout)
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // the process has its own descriptor
	log, err := os.Create(p.stderr)
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // see above
	p.cmd = exec.Command(program(tb, binary), args...)
	p.cmd.Stdout, p.cmd.Stderr = out, log
	p.cmd.Env = append(environment(tb), env...)
	p.cmd.Dir = dir
	p.cmd.SysProcAttr = childAttr()
	if err := p.cmd.Start(); err != nil {
		tb.Fatalf("start %s: %v", name, err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the exit code says it
		p.code = p.cmd.ProcessState.ExitCode()
	}()
	tb.Cleanup(func() {
		p.end()
		if tb.Failed() {
			tb.Logf("%s (process %d) was started with %s\n%s", name, p.cmd.Process.Pid, strings.Join(args, " "), p.tail())
		}
	})
	return p
}

// again starts the program once more with the same arguments, and some that come after
// them and count.
func (p *process) again(more ...string) *process {
	p.tb.Helper()
	return start(p.tb, p.name, filepath.Base(p.cmd.Path), append(slices.Clone(p.cmd.Args[1:]), more...)...)
}

// end makes sure that the process is gone: first SIGTERM, then SIGKILL.
func (p *process) end() {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p.signal(s)
		select {
		case <-p.exited:
			return
		case <-time.After(stopTime):
			p.tb.Errorf("%s did not end within %v of %v", p.name, stopTime, s)
		}
	}
}

// signal sends a signal. A process that has ended takes none.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// running says whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop sends SIGTERM, waits, and returns the exit code.
func (p *process) stop() int {
	p.tb.Helper()
	p.signal(syscall.SIGTERM)
	return p.wait()
}

// wait waits for the end and returns the exit code.
func (p *process) wait() int {
	p.tb.Helper()
	select {
	case <-p.exited:
	case <-time.After(stopTime):
		p.tb.Fatalf("%s still runs after %v", p.name, stopTime)
	}
	return p.code
}

// kill is what a machine that goes away does to a process.
func (p *process) kill() {
	p.tb.Helper()
	p.signal(syscall.SIGKILL)
	p.wait()
}

// output returns what the process has written so far.
func (p *process) output() (stdout, stderr string) {
	p.tb.Helper()
	out, err := os.ReadFile(p.stdout)
	if err != nil {
		p.tb.Fatal(err)
	}
	log, err := os.ReadFile(p.stderr)
	if err != nil {
		p.tb.Fatal(err)
	}
	return string(out), string(log)
}

// tail is the end of the output, for people.
func (p *process) tail() string {
	out, log := p.output()
	var b strings.Builder
	for _, text := range []struct{ name, text string }{{"standard output", out}, {"log", log}} {
		lines := strings.Split(strings.TrimRight(text.text, "\n"), "\n")
		fmt.Fprintf(&b, "--- end of its %s\n%s\n", text.name, strings.Join(lines[max(0, len(lines)-tailLines):], "\n"))
	}
	return b.String()
}

// run runs a program to its end.
func run(tb testing.TB, binary string, args ...string) (stdout, stderr string, code int) {
	tb.Helper()
	p := start(tb, binary, binary, args...)
	code = p.wait()
	stdout, stderr = p.output()
	return stdout, stderr, code
}

// eventually waits until ok returns nil.
func eventually(tb testing.TB, within time.Duration, what string, ok func() error) {
	tb.Helper()
	began := time.Now()
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Since(began) > within {
			tb.Fatalf("waited %v in vain for %s: %v", within, what, err)
		}
		time.Sleep(pollEvery)
	}
}

// givenAddrs are what freeAddr has returned: who was given one may not listen there yet.
var givenAddrs sync.Map

// freeAddr returns a loopback address that nobody listens on. Its port is below
// those that systems give to outgoing connections, so that none can take it while
// a process is being restarted, and above those that fetch refuses ("bad port").
func freeAddr(tb testing.TB) string {
	tb.Helper()
	const first, last = 10100, 32000
	for range 100 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(last-first)))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		_ = l.Close() // only to see that it is free
		if _, taken := givenAddrs.LoadOrStore(addr, true); taken {
			continue
		}
		return addr
	}
	tb.Fatal("no free port found")
	return ""
}
