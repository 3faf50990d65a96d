package load

import (
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of what is measured, with three digits between them. What takes longer
// counts as the longest.
const (
	leastLatency = time.Microsecond
	mostLatency  = time.Hour
)

func newHistogram() *hdr.Histogram { return hdr.New(int64(leastLatency), int64(mostLatency), 3) }

// recorder counts what becomes of requests. Its shards keep connections from waiting
// for each other; a histogram of their own would take 180 KB of each.
type recorder struct {
	origin     time.Time
	begin, end atomic.Int64 // what is measured, ns after origin
	closed     bool         // requests are due when they are sent: nothing says when else
	shards     []shard
}

type shard struct {
	mu       sync.Mutex
	measured Counts
	latency  *hdr.Histogram
	second   Counts            // since the last tick, measured or not
	recent   *hdr.Histogram    // the same
	before   map[string]Failed // calls that failed before what is measured
	opening  map[string]Failed
	opened   int // connections, again included
	_        [64]byte
}

// Counts are of calls, but for Requests.
type Counts struct {
	Requests int `json:"requests"` // sent, or not sent in time
	Calls    int `json:"calls"`
	Right    int `json:"right"`
	Null     int `json:"null"` // of the right ones: no such uncle
	Late     int `json:"late"` // requests for which no connection was free when they were due

	// Failed is by kind.
	Failed map[string]Failed `json:"failed"`
}

// Failed is a kind of failure.
type Failed struct {
	Count   int    `json:"count"`
	Example string `json:"example,omitempty"`
}

func (c *Counts) fail(n int, why *Failure) {
	if c.Failed == nil {
		c.Failed = map[string]Failed{}
	}
	addFailed(c.Failed, n, why)
}

func addFailed(to map[string]Failed, n int, why *Failure) {
	f, known := to[why.Kind]
	if !known {
		f.Example = why.Detail
	}
	f.Count += n
	to[why.Kind] = f
}

// add adds other counts.
func (c *Counts) add(o Counts) {
	c.Requests += o.Requests
	c.Calls += o.Calls
	c.Right += o.Right
	c.Null += o.Null
	c.Late += o.Late
	for kind, f := range o.Failed {
		c.fail(f.Count, &Failure{kind, f.Example})
	}
}

// Failures is how many calls failed.
func (c *Counts) Failures() (n int) {
	for f := range maps.Values(c.Failed) {
		n += f.Count
	}
	return n
}

// never is a time that does not come.
const never = 1<<63 - 1

func newRecorder(origin time.Time) *recorder {
	r := &recorder{origin: origin, shards: make([]shard, min(runtime.GOMAXPROCS(0)*2, 32))}
	r.begin.Store(never)
	r.end.Store(never)
	for i := range r.shards {
		s := &r.shards[i]
		s.latency, s.recent = newHistogram(), newHistogram()
		s.opening, s.before = map[string]Failed{}, map[string]Failed{}
	}
	return r
}

// measure says what time is measured.
func (r *recorder) measure(begin, end time.Time) {
	r.end.Store(int64(end.Sub(r.origin)))
	r.begin.Store(int64(begin.Sub(r.origin)))
}

// at is the time that many ns after the origin.
func (r *recorder) at(ns int64) time.Time { return r.origin.Add(time.Duration(ns)) }

// isMeasured says whether a request that was due at that time counts.
func (r *recorder) isMeasured(due time.Time) bool {
	t := int64(due.Sub(r.origin))
	return t >= r.begin.Load() && t < r.end.Load()
}

// sample is a request that has its outcome.
type sample struct {
	due, done time.Time
	late      bool
	calls     int
	outcome
}

// add counts a request of a connection. Latency is that of requests of which every
// call was answered rightly: a failure may well be quick.
//
// A request of a closed loop that was under way when the measured time began counts from
// there on. Else a stall from before would not be seen by those that it holds up.
func (r *recorder) add(conn int, x sample, clean func(*Failure) *Failure) {
	c := Counts{Requests: 1, Calls: x.calls, Right: x.right, Null: x.null}
	if x.late {
		c.Late = 1
	}
	for _, f := range x.failed {
		c.fail(f.calls, clean(f.why))
	}
	if begin := r.begin.Load(); r.closed && begin != never && x.due.Before(r.at(begin)) && !x.done.Before(r.at(begin)) {
		x.due = r.at(begin)
	}
	took := int64(min(max(x.done.Sub(x.due), 0), mostLatency))
	measured := r.isMeasured(x.due)
	s := &r.shards[conn%len(r.shards)]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.second.add(c)
	switch {
	case measured:
		s.measured.add(c)
	case int64(x.due.Sub(r.origin)) < r.begin.Load():
		for kind, f := range c.Failed {
			addFailed(s.before, f.Count, &Failure{kind, f.Example})
		}
	}
	if len(x.failed) > 0 {
		return
	}
	_ = s.recent.RecordValue(took) // it is within the bounds
	if measured {
		_ = s.latency.RecordValue(took)
	}
}

// addOdd counts an answer that belongs to no request.
func (r *recorder) addOdd(conn int, now time.Time, why *Failure) {
	s := &r.shards[conn%len(r.shards)]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.second.fail(1, why)
	if int64(now.Sub(r.origin)) >= r.begin.Load() {
		s.measured.fail(1, why)
	}
}

// openedOne counts a connection that was opened, or why it was not.
func (r *recorder) openedOne(conn int, why *Failure) {
	s := &r.shards[conn%len(r.shards)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if why == nil {
		s.opened++
	} else {
		addFailed(s.opening, 1, why)
	}
}

// anyOpened says whether a connection was opened, whatever became of it.
func (r *recorder) anyOpened() bool {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		opened := s.opened
		s.mu.Unlock()
		if opened > 0 {
			return true
		}
	}
	return false
}

// tick returns what was counted since the last one.
func (r *recorder) tick() (c Counts, latency *hdr.Histogram) {
	latency = newHistogram()
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		c.add(s.second)
		latency.Merge(s.recent)
		s.second = Counts{}
		s.recent.Reset()
		s.mu.Unlock()
	}
	return c, latency
}

// total puts what was counted into a result.
func (r *recorder) total(res *Result) {
	res.Latency, res.Opening, res.Before = newHistogram(), map[string]Failed{}, map[string]Failed{}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		res.add(s.measured)
		res.Latency.Merge(s.latency)
		res.Opened += s.opened
		for kind, f := range s.opening {
			addFailed(res.Opening, f.Count, &Failure{kind, f.Example})
		}
		for kind, f := range s.before {
			addFailed(res.Before, f.Count, &Failure{kind, f.Example})
		}
		s.mu.Unlock()
	}
}
