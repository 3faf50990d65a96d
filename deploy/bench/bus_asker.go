package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/schema"
)

// busAskerCommand is the argument that makes this program the one that asks.
const busAskerCommand = "ask-on-the-bus"

// busAsking is what that process is told. It writes a busAsked for each busOrder that
// it reads.
type busAsking struct {
	Server        string   // the NATS server's URL
	Workers       []string // their names
	NATS, Working []int    // ids of the processes whose CPU time is read
}

// busOrder is what to measure.
type busOrder struct {
	Way              string
	InFlight         int
	Questions        int // different ones, up to quizQuestions
	WarmUp, Duration time.Duration
}

// busAsked is what was measured, or why nothing was.
type busAsked struct {
	Cell    busCell
	Problem string
}

const (
	quizQuestions = 1024
	// askTimeout bounds the wait for one answer; one that is not there fails the run.
	askTimeout = 10 * time.Second
	// openAtMost is how long the first answer may take, and all workers to be heard:
	// servers that were just started do not know each other's workers yet.
	openAtMost = 20 * time.Second
	askAgain   = 20 * time.Millisecond
)

// askOnBus is the process's main: it measures what it is told to until its input ends.
func askOnBus(in io.Reader, out io.Writer) error {
	debug.SetGCPercent(busCollector)
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	var what busAsking
	if err := dec.Decode(&what); err != nil {
		return fmt.Errorf("whom to ask: %w", err)
	}
	for {
		var order busOrder
		if err := dec.Decode(&order); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("what to ask: %w", err)
		}
		c, err := what.measure(context.Background(), order)
		asked := busAsked{Cell: c}
		if err != nil {
			asked.Problem = err.Error()
		}
		if err = enc.Encode(asked); err != nil {
			return err
		}
	}
}

// asker asks in one of the ways.
type asker interface {
	// ask keeps n questions unanswered until the tally is over, and returns when all
	// are answered.
	ask(n int, t *tally)
	// conn is what everything goes over.
	conn() *nats.Conn
	close()
}

// open makes an asker, which has had an answer and knows the workers.
func (b busAsking) open(ctx context.Context, order busOrder) (asker, error) {
	ctx, cancel := context.WithTimeout(ctx, openAtMost)
	defer cancel()
	var a asker
	var err error
	switch order.Way {
	case wayRequest:
		a, err = openRequester(b.Server)
	case wayQueue:
		a, err = openClient(b.Server, queueNetwork, order.InFlight)
	case wayChoice:
		a, err = openClient(b.Server, choiceNetwork, order.InFlight)
	default:
		err = fmt.Errorf("there is no way %q", order.Way)
	}
	if err != nil {
		return nil, err
	}
	if order.Way == wayChoice {
		if err = b.hearWorkers(ctx, a.conn()); err != nil {
			a.close()
			return nil, err
		}
	}
	for {
		t := newTally(newQuiz(1), 1)
		t.over.Store(true) // after one question
		a.ask(1, t)
		if err = t.err(); err == nil {
			return a, nil
		}
		if errors.Is(err, errWrongAnswer) || !pause(ctx, askAgain) {
			a.close()
			return nil, err
		}
	}
}

const loadSubjects = "ommer.load."

// hearWorkers waits until every worker was heard to be ready: the client, which has
// listened for longer, knows them then. It would ask the queue group else, and nobody
// would notice.
func (b busAsking) hearWorkers(ctx context.Context, nc *nats.Conn) error {
	sub, err := nc.SubscribeSync(loadSubjects + "*")
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // an error means that the connection was closed
	missing := map[string]bool{}
	for _, name := range b.Workers {
		missing[name] = true
	}
	for len(missing) > 0 {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return fmt.Errorf("%d of %d workers do not announce themselves: %w", len(missing), len(b.Workers), err)
		}
		var load bus.Load
		if err = json.Unmarshal(m.Data, &load); err != nil {
			return fmt.Errorf("%s: %w", m.Subject, err)
		}
		if load.Network == choiceNetwork && load.State == bus.Ready {
			delete(missing, load.Worker)
		}
	}
	return nil
}

// requester asks by nc.Request.
type requester struct{ nc *nats.Conn }

func openRequester(server string) (*requester, error) {
	nc, err := nats.Connect(server)
	return &requester{nc}, err
}

func (r *requester) conn() *nats.Conn { return r.nc }
func (r *requester) close()           { r.nc.Close() }

func (r *requester) ask(n int, t *tally) {
	var waiting sync.WaitGroup
	for i := range n {
		waiting.Go(func() {
			frame := make([]byte, 0, schema.MaxRequestFrame)
			for again := true; again; again = !t.over.Load() {
				k := t.pick()
				began := time.Now()
				frame = schema.AppendRequest(frame[:0], schema.Request{ID: 1, Budget: askTimeout, Question: t.quiz.questions[k]})
				m, err := r.nc.Request(requestSubject, frame, askTimeout)
				if err != nil {
					t.fail(err)
					return
				}
				t.answered(i, k, began, m.Data)
			}
		})
	}
	waiting.Wait()
}

// clientAsker asks by package bus.
type clientAsker struct {
	link   *bus.Link
	client *bus.Client
}

func openClient(server, network string, inFlight int) (*clientAsker, error) {
	l, err := bus.Dial(bus.LinkConfig{Name: "asker", URLs: []string{server}})
	if err != nil {
		return nil, err
	}
	c, err := bus.NewClient(bus.ClientConfig{Links: []*bus.Link{l}, Network: network, Timeout: askTimeout, MaxPending: max(inFlight, bus.DefaultMaxPending)})
	if err != nil {
		l.Close()
		return nil, err
	}
	return &clientAsker{l, c}, nil
}

func (a *clientAsker) conn() *nats.Conn { return a.link.NATS() }

func (a *clientAsker) close() {
	a.client.Close()
	a.link.Close()
}

// ask has a goroutine for each processor, as an edge has event loops: answers come
// back to the one that has asked.
func (a *clientAsker) ask(n int, t *tally) {
	var loops sync.WaitGroup
	parts := min(n, runtime.GOMAXPROCS(0))
	for i := range parts {
		size := part(n, i, parts)
		back := make(chan *asking, size)
		loops.Go(func() {
			for range size {
				a.next(&asking{back: back}, t)
			}
			for open := size; open > 0; {
				q := <-back
				if err := q.answer.Err; err != nil {
					t.fail(err)
				} else {
					t.answered(i, q.k, q.began, q.answer.Result)
				}
				if t.over.Load() {
					open--
				} else {
					a.next(q, t)
				}
			}
		})
	}
	loops.Wait()
}

// next asks another question.
func (a *clientAsker) next(q *asking, t *tally) {
	q.k, q.began = t.pick(), time.Now()
	a.client.Resolve(t.quiz.questions[q.k], time.Time{}, q)
}

// asking is a question until its answer was looked at, and then the next one.
type asking struct {
	k      int
	began  time.Time
	answer schema.Answer
	back   chan<- *asking // it has room for all
}

// Answered implements schema.Receiver.
func (q *asking) Answered(a schema.Answer) {
	q.answer = a
	q.back <- q
}
