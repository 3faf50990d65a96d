package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/nats-io/nats.go"

	"github.com/ommer/ommer/deploy/child"
)

// errWrongAnswer: an answer came, and not the one to its question.
var errWrongAnswer = errors.New("a wrong answer")

// tally looks at every answer, and counts those that come while it measures.
type tally struct {
	quiz      quiz
	next      atomic.Uint64
	measuring atomic.Bool
	over      atomic.Bool // nothing more is to be asked
	shards    []tallyShard

	failing sync.Once
	failure error
	failed  chan struct{} // closed when failure is there
}

// tallyShard keeps goroutines from waiting for each other.
type tallyShard struct {
	mu       sync.Mutex
	requests uint64
	latency  *hdr.Histogram
	_        [64]byte
}

func newTally(q quiz, shards int) *tally {
	t := &tally{quiz: q, shards: make([]tallyShard, shards), failed: make(chan struct{})}
	for i := range t.shards {
		t.shards[i].latency = hdr.New(int64(time.Microsecond), int64(askTimeout), 3)
	}
	return t
}

// pick is the number of the question to ask next.
func (t *tally) pick() int { return int(t.next.Add(1) % uint64(len(t.quiz.questions))) }

// answered takes the answer to question k. Goroutines with another i do not wait for
// this one.
func (t *tally) answered(i, k int, began time.Time, answer []byte) {
	took := time.Since(began)
	if !t.quiz.right(k, answer) {
		t.fail(fmt.Errorf("%w of %d bytes to question %d", errWrongAnswer, len(answer), k))
		return
	}
	if !t.measuring.Load() {
		return
	}
	s := &t.shards[i%len(t.shards)]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	_ = s.latency.RecordValue(min(int64(took), int64(askTimeout))) // it is in bounds
}

// fail ends the tally. Only the first failure is kept.
func (t *tally) fail(err error) {
	t.failing.Do(func() {
		t.failure = err
		t.over.Store(true)
		close(t.failed)
	})
}

// err is the failure, if there was one.
func (t *tally) err() error {
	select {
	case <-t.failed:
		return t.failure
	default:
		return nil
	}
}

// sum adds up what was counted.
func (t *tally) sum() (requests uint64, latency *hdr.Histogram) {
	latency = hdr.New(int64(time.Microsecond), int64(askTimeout), 3)
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		requests += s.requests
		latency.Merge(s.latency)
		s.mu.Unlock()
	}
	return requests, latency
}

// busReading is what has come together until a moment.
type busReading struct {
	at  time.Time
	cpu busCPU
	nc  nats.Statistics
}

func (b busAsking) read(nc *nats.Conn) (r busReading, err error) {
	sum := func(pids []int) (total time.Duration) {
		for _, pid := range pids {
			d, failed := child.CPU(pid)
			err = errors.Join(err, failed)
			total += d
		}
		return total
	}
	r.cpu.NATS, r.cpu.Workers = sum(b.NATS), sum(b.Working)
	own, failed := child.OwnCPU()
	r.cpu.Asker = own
	r.at, r.nc = time.Now(), nc.Stats()
	return r, errors.Join(err, failed)
}

// measure drives a closed loop. One failure fails it at once.
func (b busAsking) measure(ctx context.Context, order busOrder) (c busCell, err error) {
	a, err := b.open(ctx, order)
	if err != nil {
		return c, err
	}
	defer a.close()
	t := newTally(newQuiz(order.Questions), runtime.GOMAXPROCS(0))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.ask(order.InFlight, t)
	}()
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-t.failed:
		}
	}
	wait(order.WarmUp)
	before, err1 := b.read(a.conn())
	t.measuring.Store(true)
	wait(order.Duration)
	after, err2 := b.read(a.conn())
	t.measuring.Store(false)
	t.over.Store(true)
	<-ended
	if err = errors.Join(t.err(), err1, err2); err != nil {
		return c, err
	}
	requests, latency := t.sum()
	if requests == 0 {
		return c, errors.New("no answer in the measured time")
	}
	p := func(q float64) time.Duration { return time.Duration(latency.ValueAtQuantile(q)) }
	return busCell{
		Way: order.Way, InFlight: order.InFlight, Workers: len(b.Workers), Servers: len(b.NATS),
		Requests: requests, Took: after.at.Sub(before.at), P50: p(50), P99: p(99), CPU: after.cpu.minus(before.cpu),
		Sent: after.nc.OutMsgs - before.nc.OutMsgs, Received: after.nc.InMsgs - before.nc.InMsgs,
	}, nil
}
