package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/schema"
)

// busWorkerCommand is the argument that makes this program a worker that knows the
// answers.
const busWorkerCommand = "answer-on-the-bus"

// busWorking is what that process is told. It writes one busWorked when it has joined
// the bus, and one for each line that it reads.
type busWorking struct {
	Name   string
	Server string // the NATS server's URL
}

// busWorked is how many questions it has answered since its start.
type busWorked struct{ Answered uint64 }

// busCount is the line that it reads.
const busCount = "count"

// Ways to ask. Each has a connection and subjects of its own on both sides, so that what
// serves one costs the others nothing.
const (
	wayRequest = "nc.Request"  // nats.go as it comes, a goroutine waits for each answer
	wayQueue   = "queue-group" // package bus; the NATS server picks a worker
	wayChoice  = "by-worker"   // package bus; the client picks among those that announce
)

var wayNames = []string{wayRequest, wayQueue, wayChoice}

// Networks of the ways, as tokens of subjects.
const (
	queueNetwork  = "bench-queue"
	choiceNetwork = "bench-choice"
)

// requestSubject and requestQueue are for nc.Request. The subject has as many tokens as
// those of the bus.
const (
	requestSubject = "ommer.v1.bench-request.eth_getUncleByBlockHashAndIndex"
	requestQueue   = "lookup"
)

// busCollector is GOGC in the asker and the workers, as it is in nats-server: a small
// heap at Go's own setting is collected all the time, which would be measured as well.
const busCollector = 400

// workOnBus is the process's main: it answers until its input ends.
func workOnBus(in io.Reader, out io.Writer) (err error) {
	debug.SetGCPercent(busCollector)
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	var what busWorking
	if err = dec.Decode(&what); err != nil {
		return fmt.Errorf("what to answer: %w", err)
	}
	w := busWorker{quiz: newQuiz(quizQuestions)}
	defer func() { err = errors.Join(err, w.leave()) }()
	if err = w.join(what); err != nil {
		return err
	}
	for {
		if err = enc.Encode(busWorked{w.answered.Load()}); err != nil {
			return err
		}
		var command string
		if err = dec.Decode(&command); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("what to do: %w", err)
		}
	}
}

// busWorker answers on every way at once.
type busWorker struct {
	quiz     quiz
	answered atomic.Uint64
	ends     []func() error // in the order of their beginnings
}

// leaveTimeout is how long a worker may take to leave the bus.
const leaveTimeout = 5 * time.Second

func (w *busWorker) join(what busWorking) error {
	nc, err := nats.Connect(what.Server, nats.Name(what.Name))
	if err != nil {
		return err
	}
	w.ends = append(w.ends, func() error { nc.Close(); return nil })
	if _, err = nc.QueueSubscribe(requestSubject, requestQueue, w.respond); err != nil {
		return err
	}
	if err = nc.Flush(); err != nil {
		return err
	}
	if err = w.serve(what, bus.ServerConfig{Network: queueNetwork}); err != nil {
		return err
	}
	return w.serve(what, bus.ServerConfig{Network: choiceNetwork, WorkerID: what.Name})
}

// serve puts the worker on the bus.
func (w *busWorker) serve(what busWorking, cfg bus.ServerConfig) error {
	l, err := bus.Dial(bus.LinkConfig{Name: what.Name, URLs: []string{what.Server}})
	if err != nil {
		return err
	}
	w.ends = append(w.ends, func() error { l.Close(); return nil })
	cfg.Links, cfg.Resolver = []*bus.Link{l}, w
	s, err := bus.NewServer(cfg)
	if err != nil {
		return err
	}
	w.ends = append(w.ends, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		return s.Leave(ctx)
	})
	return nil
}

func (w *busWorker) leave() error {
	var errs []error
	for i := len(w.ends) - 1; i >= 0; i-- {
		errs = append(errs, w.ends[i]())
	}
	return errors.Join(errs...)
}

// Resolve implements schema.Resolver: the answer is there at once.
func (w *busWorker) Resolve(q schema.Question, _ time.Time, to schema.Receiver) {
	result := w.quiz.answer(q)
	if result == nil {
		to.Answered(schema.Answer{Err: &schema.Error{Code: schema.Internal, Detail: "not a question of this run"}})
		return
	}
	w.answered.Add(1)
	to.Answered(schema.Answer{Result: result})
}

// respond answers nc.Request: it reads the same frame, and sends the answer as it is.
func (w *busWorker) respond(m *nats.Msg) {
	r, err := schema.ParseRequest(m.Data)
	if err != nil {
		return // who asks runs into his time-out
	}
	w.answered.Add(1)
	_ = m.Respond(w.quiz.answer(r.Question)) // the connection is lost: the same
}
