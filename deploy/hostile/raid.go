package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ommer/ommer/deploy/child"
)

// raidCommand is the argument that makes this program an attacker.
const raidCommand = "raid"

// job is what a process of attackers is told, by its standard input: arguments are
// there for all to read, and it has the key.
type job struct {
	Attack  string
	Secure  bool
	Site    site
	Sources []string // addresses to come from
	Enemies int      // of this process
	Lasts   time.Duration
	Unit    time.Duration // the edge's time-outs
}

// result is what the attackers have met.
type result struct {
	Lives   int64          // connections that were opened
	Sent    int64          // bytes
	Answers map[string]int // that did not end a connection
	Ends    map[string]int
	CPU     time.Duration `json:"-"` // of the attackers
}

// add adds what another process has met.
func (r *result) add(o result) {
	r.Lives += o.Lives
	r.Sent += o.Sent
	r.CPU += o.CPU
	for what, n := range o.Answers {
		r.Answers[what] += n
	}
	for what, n := range o.Ends {
		r.Ends[what] += n
	}
}

// report counts what enemies meet.
type report struct {
	lives, sent atomic.Int64

	mu            sync.Mutex
	answers, ends map[string]int
}

func (r *report) answer(what string) { r.count(&r.answers, what) }

func (r *report) end(what string) { r.count(&r.ends, what) }

// answered says whether there was an answer.
func (r *report) answered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.answers) > 0
}

func (r *report) count(m *map[string]int, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[what]++
}

func (r *report) result() result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return result{Lives: r.lives.Load(), Sent: r.sent.Load(), Answers: maps.Clone(r.answers), Ends: maps.Clone(r.ends)}
}

// raid is the process of attackers: it reads its job, attacks, and writes what came of
// it. It ends when its input does, as it has to when its parent is gone.
func raid(in io.Reader, out io.Writer) error {
	dec := json.NewDecoder(in)
	var j job
	if err := dec.Decode(&j); err != nil {
		return fmt.Errorf("what to attack: %w", err)
	}
	if err := yield(); err != nil {
		return err
	}
	a := army{job: j, attack: find(j.Attack)}
	if a.attack == nil {
		return fmt.Errorf("there is no attack %q", j.Attack)
	}
	var err error
	if a.tls, err = j.Site.tls(); err != nil {
		return err
	}
	a.hello = clientHello(a.tls)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, io.MultiReader(dec.Buffered(), in)) // nothing more is said
		cancel()
	}()
	a.march(ctx)
	return json.NewEncoder(out).Encode(a.report.result())
}

// niceness gives everybody else the CPU first.
const niceness = 19

// yield lowers the priority of every thread of this process. Later ones have that of
// the thread that starts them.
func yield() error {
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		id, err := strconv.Atoi(filepath.Base(t))
		if err != nil {
			return err
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, niceness); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("nice: %w", err)
		}
	}
	return nil
}

// spareTime is how long attackers may take to start and to end, beyond the attack.
const spareTime = 30 * time.Second

// startRaid attacks with processes of their own, and returns what they have met.
// They stop when dismissed is closed, at the latest.
func startRaid(ctx context.Context, j job, processes int, dismissed <-chan struct{}) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, j.Lasts+2*patience+spareTime)
	defer cancel()
	all := result{Answers: map[string]int{}, Ends: map[string]int{}}
	type outcome struct {
		result
		error
	}
	outcomes := make(chan outcome)
	j.Enemies /= processes
	for range processes {
		go func() {
			r, err := attackOnce(ctx, j, dismissed)
			outcomes <- outcome{r, err}
		}()
	}
	var errs []error
	for range processes {
		o := <-outcomes
		all.add(o.result)
		errs = append(errs, o.error)
	}
	return all, errors.Join(errs...)
}

// attackOnce runs one process of attackers.
func attackOnce(ctx context.Context, j job, dismissed <-chan struct{}) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := child.Command(ctx, self, raidCommand)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return r, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err = cmd.Start(); err != nil {
		return r, err
	}
	// Its input stays open as long as it is to go on.
	var closeInput sync.Once
	stop := func() { closeInput.Do(func() { _ = in.Close() }) } // fails when the process is gone, which Wait tells
	answered := make(chan struct{})
	go func() {
		select {
		case <-dismissed:
			stop()
		case <-answered:
		}
	}()
	if err = json.NewEncoder(in).Encode(j); err == nil {
		err = json.NewDecoder(out).Decode(&r)
	}
	close(answered)
	stop()
	err = errors.Join(err, cmd.Wait())
	if err != nil {
		return r, fmt.Errorf("the process of attackers: %w", err)
	}
	r.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return r, nil
}
