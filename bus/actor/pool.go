package actor

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Runner is what a Pool runs. A Runner that is also a Crasher is told about a
// panic out of its Run (and still holds its Cell's run then); a panic out of any
// other ends the process, as it would on a goroutine of its own.
type Runner interface {
	Run()
}

// Pool runs what has work, in the order of submission but for what is bulk, on a
// fixed number of goroutines. A Run should be short and must not block: it would
// hold one of them.
type Pool struct {
	size    int
	workers sync.WaitGroup

	mu      sync.Mutex
	work    sync.Cond // on mu: the queue has something, or the pool is closing
	queue   ring[Runner]
	bulk    ring[Runner] // see SubmitBulk
	bulkAt  time.Time    // when one of bulk was taken last
	idle    int          // goroutines that wait for work
	waking  bool         // one of them was signalled and has not arrived yet
	closing bool
}

// keepQueue is how many slots of the queue an idle pool holds on to. A longer
// one, grown in a burst, is given back when it has run empty.
const keepQueue = 4096

// NewPool starts a pool of n goroutines; n <= 0 means GOMAXPROCS. Close ends it.
func NewPool(n int) *Pool {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	p := &Pool{size: n}
	p.work.L = &p.mu
	p.workers.Add(n)
	for range n {
		go p.serve()
	}
	return p
}

// Submit queues r. It never blocks and never refuses before Close; any goroutine
// may call it. The queue has no limit of its own: each Runner is in it at most
// once, its Cell sees to that, so that it is never longer than there are cells.
// What is submitted after Close has returned is not run.
func (p *Pool) Submit(r Runner) { p.submit(&p.queue, r) }

// SubmitBulk is Submit for a run that takes long: it waits until nothing else does,
// but not for ever. So the many that take little do not stand behind the few that
// take much.
func (p *Pool) SubmitBulk(r Runner) { p.submit(&p.bulk, r) }

// bulkEvery is how often one of bulk is taken while there is always something else.
const bulkEvery = 5 * time.Millisecond

func (p *Pool) submit(q *ring[Runner], r Runner) {
	p.mu.Lock()
	q.push(r)
	wake := p.wakeOne()
	p.mu.Unlock()
	if wake {
		p.work.Signal()
	}
}

// wakeOne decides, under mu, whether to signal a waiting goroutine. One at a time
// is on its way: when it arrives it wakes the next if there is still more to do,
// so that a burst of submissions does not wake goroutines that find nothing.
func (p *Pool) wakeOne() bool {
	if p.idle == 0 || p.waking || p.queue.n+p.bulk.n == 0 {
		return false
	}
	p.waking = true
	return true
}

// Close waits until everything queued has run, also what those runs submit, and
// for the goroutines. It must not be called from a Run. More calls do no harm.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.work.Broadcast()
	p.workers.Wait()
}

// Size returns the number of goroutines.
func (p *Pool) Size() int { return p.size }

// Queued returns how many runners wait for a goroutine at this moment.
func (p *Pool) Queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.n + p.bulk.n
}

// serve is one of the pool's goroutines.
func (p *Pool) serve() {
	over := false
	defer func() {
		if !over { // runtime.Goexit, in a run or in Crashed, ends this goroutine
			p.workers.Add(1)
			go p.serve()
		}
		p.workers.Done()
	}()
	for {
		crashed, err := p.runAll()
		if crashed == nil {
			over = true
			return
		}
		crashed.Crashed(err)
	}
}

// runAll runs what is queued until the pool closes, or until a Crasher panics: it
// is returned with the reason. There is one deferred call for all of them and
// none for each run.
func (p *Pool) runAll() (crashed Crasher, err error) {
	var running Runner
	defer func() {
		if running == nil {
			return
		}
		reason := recover()
		c, ok := running.(Crasher)
		if !ok {
			if reason != nil {
				panic(reason)
			}
			return
		}
		crashed, err = c, &PanicError{Value: reason, Stack: debug.Stack()}
		if reason == nil { // runtime.Goexit cannot be stopped: nothing is returned
			c.Crashed(err)
		}
	}()
	for {
		running = nil
		r := p.next()
		if r == nil {
			return nil, nil
		}
		running = r
		r.Run()
	}
}

// next waits for work. It returns nil when the pool is closing and has none.
func (p *Pool) next() Runner {
	p.mu.Lock()
	for p.queue.n+p.bulk.n == 0 {
		if p.closing {
			p.mu.Unlock()
			return nil
		}
		p.queue.trim(keepQueue)
		p.bulk.trim(keepQueue)
		p.idle++
		p.work.Wait()
		p.idle--
		p.waking = false
	}
	r := p.take()
	wake := p.wakeOne()
	p.mu.Unlock()
	if wake {
		p.work.Signal()
	}
	return r
}

// take returns what is to run now. Something is queued.
func (p *Pool) take() Runner {
	if p.bulk.n == 0 {
		return p.queue.pop()
	}
	now := time.Now()
	if p.queue.n > 0 && now.Sub(p.bulkAt) < bulkEvery {
		return p.queue.pop()
	}
	p.bulkAt = now
	return p.bulk.pop()
}
