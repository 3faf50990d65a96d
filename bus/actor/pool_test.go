package actor

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// job is a Runner made of a function.
type job func()

func (j *job) Run() { (*j)() }

func newJob(f func()) *job { return (*job)(&f) }

func TestPoolCloseRunsWhatIsQueued(t *testing.T) {
	p := NewPool(2)
	var ran atomic.Int32
	for range 100 {
		p.Submit(newJob(func() {
			ran.Add(1)
			p.Submit(newJob(func() { ran.Add(1) }))
		}))
	}
	p.Close()
	if got := ran.Load(); got != 200 {
		t.Errorf("ran %d, want 200: what was queued and what that submitted", got)
	}
	p.Close()
}

func TestPoolSize(t *testing.T) {
	for _, n := range []int{-1, 0, 3} {
		p := NewPool(n)
		want := n
		if n <= 0 {
			want = runtime.GOMAXPROCS(0)
		}
		if p.Size() != want {
			t.Errorf("NewPool(%d).Size() = %d, want %d", n, p.Size(), want)
		}
		p.Close()
	}
}

// TestPoolUsesAllGoroutines has as many runs wait for each other as there are
// goroutines: a burst wakes them all.
func TestPoolUsesAllGoroutines(t *testing.T) {
	const n = 4
	p := NewPool(n)
	defer p.Close()
	for range 100 {
		var inside atomic.Int32
		all, done := make(chan struct{}), make(chan struct{}, n)
		for range n {
			p.Submit(newJob(func() {
				if inside.Add(1) == n {
					close(all)
				}
				<-all
				done <- struct{}{}
			}))
		}
		for range n {
			<-done
		}
	}
}

// greedy always has more to do.
type greedy struct {
	pool *Pool
	runs atomic.Int64
	stop atomic.Bool
}

func (g *greedy) Run() {
	if g.runs.Add(1); !g.stop.Load() {
		g.pool.Submit(g)
	}
}

// TestPoolFairness: one that submits itself again and again gets one turn for
// each turn of another.
func TestPoolFairness(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	a, b := &greedy{pool: p}, &greedy{pool: p}
	held := make(chan struct{})
	p.Submit(newJob(func() { <-held })) // until all are queued
	p.Submit(a)
	p.Submit(b)
	turns := 0
	done := make(chan struct{})
	var count *job
	count = newJob(func() {
		if turns++; turns == 1000 {
			a.stop.Store(true)
			b.stop.Store(true)
			close(done)
			return
		}
		p.Submit(count)
	})
	p.Submit(count)
	close(held)
	<-done
	for _, g := range []*greedy{a, b} {
		if got := g.runs.Load(); got < 999 || got > 1001 {
			t.Errorf("%d runs while another had 1000", got)
		}
	}
}

// fragile fails in a way of the test's choosing.
type fragile struct {
	fail    func()
	crashed chan error
}

func (f *fragile) Run()              { f.fail() }
func (f *fragile) Crashed(err error) { f.crashed <- err }

func TestPoolTellsCrasher(t *testing.T) {
	reason := errors.New("reason")
	for _, tt := range []struct {
		name   string
		fail   func()
		reason error // wrapped, beside ErrPanic
		text   string
	}{
		{"an error", func() { panic(reason) }, reason, "actor: panic: reason"},
		{"a string", func() { panic("text") }, ErrPanic, "actor: panic: text"},
		{"Goexit", runtime.Goexit, ErrPanic, "actor: panic: runtime.Goexit called"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := NewPool(1)
			defer p.Close()
			f := &fragile{fail: tt.fail, crashed: make(chan error, 1)}
			p.Submit(f)
			err := <-f.crashed
			if !errors.Is(err, ErrPanic) || !errors.Is(err, tt.reason) || err.Error() != tt.text {
				t.Errorf("Crashed(%v), want %q", err, tt.text)
			}
			if pe, ok := errors.AsType[*PanicError](err); !ok || !strings.Contains(string(pe.Stack), "fragile") {
				t.Error("no stack, or not that of the panic")
			}
			// The pool goes on, with as many goroutines as before.
			ran := make(chan struct{})
			p.Submit(newJob(func() { close(ran) }))
			<-ran
		})
	}
}

// TestPoolPanicEndsProcess: nobody is told of a Runner's panic, so it must not be
// swallowed.
func TestPoolPanicEndsProcess(t *testing.T) {
	if os.Getenv("ACTOR_TEST_PANIC") != "" {
		p := NewPool(1)
		p.Submit(newJob(func() { panic("nobody was told") }))
		p.Close()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPoolPanicEndsProcess$")
	cmd.Env = append(os.Environ(), "ACTOR_TEST_PANIC=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nobody was told") {
		t.Errorf("err = %v, output:\n%s", err, out)
	}
}

// TestPoolBulk: what is bulk runs behind everything else, in its own order, and is not
// kept from running for ever.
func TestPoolBulk(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	held, release := make(chan struct{}), make(chan struct{})
	p.Submit(newJob(func() { close(held); <-release }))
	<-held
	var order []string
	done := make(chan struct{})
	add := func(name string) *job { return newJob(func() { order = append(order, name) }) }
	p.bulkAt = time.Now().Add(time.Hour) // its time does not come
	for _, name := range []string{"bulk 1", "bulk 2"} {
		p.SubmitBulk(add(name))
	}
	for _, name := range []string{"a", "b", "c"} {
		p.Submit(add(name))
	}
	if got := p.Queued(); got != 5 {
		t.Errorf("%d are queued, want 5", got)
	}
	p.SubmitBulk(newJob(func() { close(done) }))
	close(release)
	<-done
	if got, want := strings.Join(order, ", "), "a, b, c, bulk 1, bulk 2"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
	// Something else is always there, and bulk has its turn all the same.
	ran := make(chan struct{})
	var again func()
	again = func() {
		select {
		case <-ran:
		default:
			p.Submit(newJob(again))
		}
	}
	p.Submit(newJob(again))
	p.SubmitBulk(newJob(func() { close(ran) }))
	<-ran
}
