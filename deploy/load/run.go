package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Config is what a run does.
type Config struct {
	Dialer      *Dialer
	Connections int
	InFlight    int           // requests of a WebSocket without an answer; 0 means 1
	Rate        float64       // calls per second of all connections together; 0: a closed loop
	Ramp        time.Duration // over which connections are opened; 0: as fast as they can be
	WarmUp      time.Duration // from when all are open until the measured time
	Duration    time.Duration // measured

	// Begin and End are called when the measured time begins and when it is over.
	Begin, End func()
	// Progress is called each second.
	Progress func(Tick)
}

// Limits of a run.
const (
	MaxConnections = 1_000_000
	MaxInFlight    = 1024
	MaxBatch       = 1000
)

// Tick is what happened within a second.
type Tick struct {
	Open int // connections
	Counts
	P50, P99 time.Duration
	Measured bool // within the measured time
	Ended    bool // only the last answers are waited for
}

// Result is what came of a run.
type Result struct {
	Counts
	Took    time.Duration     // the measured time
	Latency *hdr.Histogram    // ns, of requests of which all calls were answered rightly
	Opened  int               // connections, those that were opened again included
	Opening map[string]Failed // connections that were not opened
	Before  map[string]Failed // calls that failed before the measured time
	Early   bool              // it was ended before its time
}

// ErrNothing says that a run was over before anything was measured.
var ErrNothing = errors.New("nothing was measured")

// run is a run under way.
type run struct {
	Config
	rec      *recorder
	schedule *schedule // nil for a closed loop, to be read after started
	started  chan struct{}
	life     context.Context        // until the end of the measured time
	ended    <-chan struct{}        // that end
	drained  time.Time              // when even late requests are given up, to be read after ended
	conns    []atomic.Pointer[Conn] // the last of each driver
	open     atomic.Int64
	tried    sync.WaitGroup // first attempts to open a connection
}

// Run opens the connections, drives them and closes them. When ctx ends it ends early.
func Run(ctx context.Context, c Config) (Result, error) {
	c.InFlight = max(c.InFlight, 1)
	now := time.Now()
	life, end := context.WithCancel(context.Background())
	defer end()
	r := &run{Config: c, rec: newRecorder(now), started: make(chan struct{}), life: life, ended: life.Done(), conns: make([]atomic.Pointer[Conn], c.Connections)}
	r.rec.closed = c.Rate == 0
	all := make(chan struct{})
	r.tried.Add(c.Connections)
	begin := func() {
		if c.Rate > 0 {
			r.schedule = newSchedule(time.Now(), c.Rate/float64(c.Dialer.qs.requests[0].calls), c.Ramp)
		}
		close(r.started)
	}
	if c.Ramp > 0 || c.Rate == 0 {
		begin()
	}
	var driving, watching sync.WaitGroup
	for n := range c.Connections {
		driving.Go(func() { r.drive(n, now.Add(time.Duration(n)*c.Ramp/time.Duration(c.Connections))) })
	}
	quiet := make(chan struct{})
	if c.Progress != nil {
		watching.Go(func() { r.watch(quiet) })
	}
	watching.Go(func() {
		r.tried.Wait()
		close(all)
	})
	res := r.phases(ctx, all, begin)
	end()
	idle := make(chan struct{})
	watching.Go(func() { r.interrupt(idle) })
	driving.Wait()
	close(idle)
	close(quiet)
	watching.Wait()
	r.account(&res)
	switch {
	case res.Opened == 0:
		return res, fmt.Errorf("%w: no connection could be opened", ErrNothing)
	case res.Took == 0:
		return res, ErrNothing
	}
	return res, nil
}

// phases goes through the phases of a run.
func (r *run) phases(ctx context.Context, all <-chan struct{}, begin func()) (res Result) {
	select {
	case <-all:
	case <-ctx.Done():
	}
	// Known before it begins, so that no request at its edges is counted by accident.
	began := time.Now().Add(r.WarmUp)
	over := began.Add(r.Duration)
	r.rec.measure(began, over)
	select {
	case <-r.started:
	default:
		begin()
	}
	if r.rec.anyOpened() && pause(ctx, r.WarmUp) {
		if r.Begin != nil {
			r.Begin()
		}
		if !pause(ctx, time.Until(over)) {
			over = time.Now()
			r.rec.measure(began, over)
		}
		if r.End != nil {
			r.End()
		}
		res.Took = over.Sub(began)
	}
	res.Early = ctx.Err() != nil
	if res.Took == 0 {
		r.rec.begin.Store(never)
	}
	r.drained = time.Now().Add(min(r.Dialer.config.Timeout, mostDraining))
	return res
}

// mostDraining is how long the last answers are waited for at most: somebody waits for
// the result.
const mostDraining = 5 * time.Second

// interrupt ends what the connections wait for when the time for the last answers is
// over, again and again: each may just be about to wait.
func (r *run) interrupt(idle <-chan struct{}) {
	const again = 50 * time.Millisecond
	t := time.NewTimer(time.Until(r.drained))
	defer t.Stop()
	for {
		select {
		case <-idle:
			return
		case <-t.C:
		}
		for i := range r.conns {
			if c := r.conns[i].Load(); c != nil {
				_ = c.net().SetDeadline(time.Unix(1, 0)) // it may be closed
			}
		}
		t.Reset(again)
	}
}

// isDrained says whether the time for the last answers is over.
func (d *driver) isDrained(now time.Time) bool { return d.over() && !now.Before(d.drained) }

// account makes the result of what was counted. Requests that were due and that no
// connection was free for count as failed.
func (r *run) account(res *Result) {
	r.rec.total(res)
	if r.schedule == nil || res.Took == 0 {
		return
	}
	due := int(r.schedule.before(r.rec.at(r.rec.end.Load())) - r.schedule.before(r.rec.at(r.rec.begin.Load())))
	if unsent := due - res.Requests; unsent > 0 {
		calls := unsent * r.Dialer.qs.requests[0].calls
		res.Requests += unsent
		res.Calls += calls
		res.Late += unsent
		res.fail(calls, &Failure{KindUnsent, "no connection was free"})
	}
}

// watch reports progress until it is told to be quiet.
func (r *run) watch(quiet <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-quiet:
			return
		case now := <-ticker.C:
			c, h := r.rec.tick()
			r.Progress(Tick{
				Open: int(r.open.Load()), Counts: c, Measured: r.rec.isMeasured(now), Ended: r.life.Err() != nil,
				P50: time.Duration(h.ValueAtQuantile(50)), P99: time.Duration(h.ValueAtQuantile(99)),
			})
		}
	}
}

// How long a connection that could not be opened, or that broke before it had a right
// answer, is left alone: the least, doubled each time up to the most.
const (
	leastBackOff = 50 * time.Millisecond
	mostBackOff  = 5 * time.Second
)

// driver is one connection of a run, opened again when it breaks.
type driver struct {
	*run
	number  int
	conn    *Conn
	timer   *time.Timer
	due     time.Time // of the ticket that it holds
	holds   bool
	late    bool
	backOff time.Duration
}

// drive drives one connection, from that time on.
func (r *run) drive(number int, from time.Time) {
	d := &driver{run: r, number: number, timer: time.NewTimer(time.Until(from))}
	defer d.timer.Stop()
	tried := sync.OnceFunc(r.tried.Done)
	defer tried()
	if !d.sleep(nil) {
		return
	}
	for {
		err := d.dial()
		tried()
		if err == nil {
			r.open.Add(1)
			d.use()
			r.open.Add(-1)
		}
		if d.over() {
			return
		}
		if d.backOff > 0 {
			d.timer.Reset(d.backOff)
			if !d.sleep(nil) {
				return
			}
		}
		d.backOff = min(max(2*d.backOff, leastBackOff), mostBackOff)
	}
}

// over says whether the run has ended and there is nothing left to do.
func (d *driver) over() bool {
	select {
	case <-d.ended:
		// A late ticket may still wait for a connection; it is counted as not sent.
		return true
	default:
		return false
	}
}

func (d *driver) dial() error {
	c, err := d.Dialer.Dial(d.life, d.number)
	if d.conn = c; err != nil {
		if f, ok := errors.AsType[*Failure](err); ok && !d.over() {
			d.rec.openedOne(d.number, f)
		}
		return err
	}
	d.conns[d.number].Store(c)
	d.rec.openedOne(d.number, nil)
	return nil
}

// use asks on the connection until it breaks or the run is over.
func (d *driver) use() {
	<-d.started
	if d.conn.ws != nil && (d.InFlight > 1 || d.schedule != nil) {
		// With a schedule there are pauses, in which pings must be answered.
		newPipeline(d).run()
		return
	}
	for !d.conn.last && d.wait(nil) {
		due, late := d.due, d.late
		d.holds = false
		i := d.conn.turn()
		idle := d.conn.used
		_, o := d.conn.ask(i)
		if d.schedule != nil && d.conn.stale && time.Since(idle) > mayClose {
			d.holds = true // and is asked on the next connection
			d.backOff = 0
			break
		}
		now := time.Now()
		if timedOut(o) && d.isDrained(now) {
			o = all(d.Dialer.qs.requests[i].calls, unanswered())
		}
		d.record(sample{due: due, done: now, late: late, calls: d.Dialer.qs.requests[i].calls, outcome: o})
		if len(o.failed) == 0 {
			d.backOff = 0
		}
	}
	if !d.conn.last {
		_ = d.conn.Close()
	}
}

// timedOut says whether a request had no answer in time.
func timedOut(o outcome) bool { return len(o.failed) > 0 && o.failed[0].why.Kind == KindTimeout }

// mayClose is how long an HTTP connection must have been idle before a server that
// closes it does nothing wrong. RFC 9112 section 9.3.1 has clients ask again then.
const mayClose = time.Second

func (d *driver) record(s sample) { d.rec.add(d.number, s, d.Dialer.clean) }

// wait returns true when it is time to send a request, which is then due at d.due,
// and false when there is none before the end or when broken is closed.
func (d *driver) wait(broken <-chan struct{}) bool {
	if d.schedule == nil {
		d.due, d.late = time.Now(), false
		return !d.over()
	}
	if !d.holds {
		d.due, d.holds = d.schedule.take(), true
		d.late = time.Now().After(d.due)
	}
	for {
		select {
		case <-d.ended:
			over := d.rec.at(d.rec.end.Load())
			if !d.due.Before(over) || d.isDrained(time.Now()) {
				return false
			}
		case <-broken:
			return false
		default:
		}
		left := time.Until(d.due)
		if left <= 0 {
			return true
		}
		d.timer.Reset(left)
		d.sleep(broken)
	}
}

// sleep waits for the timer. It returns false when the run ended or when broken was
// closed before.
func (d *driver) sleep(broken <-chan struct{}) bool {
	select {
	case <-d.timer.C:
		return true
	case <-d.ended:
	case <-broken:
	}
	d.timer.Stop()
	return false
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
