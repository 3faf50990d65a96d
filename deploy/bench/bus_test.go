package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
)

func TestParseBus(t *testing.T) {
	c, err := parseBus([]string{"--servers", "3", "--workers", "2", "--in-flight", "1,16", "--only", "by-worker,nc.Request", "--duration", "1s", "--rounds", "5"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if c.servers != 3 || !slices.Equal(c.workers, []int{2}) || !slices.Equal(c.inFlight, []int{1, 16}) ||
		!slices.Equal(c.only, []string{wayChoice, wayRequest}) || c.duration != time.Second || c.rounds != 5 {
		t.Errorf("got %+v", c)
	}
	if c, err = parseBus(nil, io.Discard); err != nil || c.servers != 1 || !slices.Equal(c.only, wayNames) {
		t.Errorf("without flags: %+v, %v", c, err)
	}
	for name, args := range map[string][]string{
		"unknown flag":       {"--fast"},
		"two servers":        {"--servers", "2"},
		"no workers":         {"--workers", "0"},
		"many workers":       {"--workers", "1000"},
		"no number":          {"--in-flight", "1,few"},
		"too many in flight": {"--in-flight", "100000"},
		"unknown way":        {"--only", "pigeon"},
		"shorter than ticks": {"--duration", "1ms"},
		"no rounds":          {"--rounds", "0"},
		"argument":           {"fast"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseBus(args, io.Discard); !errors.As(err, new(usage)) {
				t.Errorf("got %v, want a usage error", err)
			}
		})
	}
	if _, err := parseBus([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

func TestQuiz(t *testing.T) {
	q := newQuiz(50)
	for k, question := range q.questions {
		if a := q.answer(question); len(a) != quizAnswer || !q.right(k, a) || q.right((k+1)%50, a) {
			t.Errorf("question %d: %d bytes, or they count as right for another", k, len(a))
		}
	}
	if a := q.answer(newQuiz(51).questions[50]); a != nil {
		t.Error("there is an answer to what is not asked")
	}
	if a := q.answer(schema.Question{Block: q.questions[3].Block, Index: 1}); a != nil {
		t.Error("there is an answer for another index")
	}
	a := slices.Clone(q.answers[0])
	a[700]++
	if q.right(0, a) {
		t.Error("an answer with a flaw counts as right")
	}
}

func startBus(t *testing.T) (url string) {
	t.Helper()
	s, err := embedded.New(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.URL()
}

// startTestStack starts workers and an asker as processes, on a NATS server in this one.
func startTestStack(t *testing.T, workers int) *busStack {
	t.Helper()
	s := &busStack{urls: []string{startBus(t)}, killed: t.Context().Err, dir: t.TempDir()}
	err := s.startRoles(context.Background(), workers, []int{os.Getpid()})
	t.Cleanup(func() {
		s.killed = func() error { return nil } // the test's context is done by now
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// measureMany measures again, and for longer, when there were few answers: the machine may
// have stood still all the time.
func (s *busStack) measureMany(t *testing.T, order busOrder) busCell {
	t.Helper()
	for {
		c, err := s.measure(order)
		if err == nil && c.Requests >= 100 {
			return c
		}
		if err != nil && !strings.Contains(err.Error(), "no answer in the measured time") || order.Duration > 10*time.Second {
			t.Fatalf("%d requests in %v: %v", c.Requests, order.Duration, err)
		}
		order.Duration *= 2
	}
}

// Every way is measured, its answers come from the workers, and those of the bus share
// messages.
func TestBusWays(t *testing.T) {
	s := startTestStack(t, 2)
	for _, way := range wayNames {
		for _, inFlight := range []int{1, 100} {
			c := s.measureMany(t, busOrder{Way: way, InFlight: inFlight, Questions: quizQuestions, WarmUp: 50 * time.Millisecond, Duration: 200 * time.Millisecond})
			t.Logf("%+v", c)
			if c.Way != way || c.InFlight != inFlight || c.Workers != 2 || c.Servers != 1 || c.Requests == 0 || c.Took <= 0 ||
				c.P50 <= 0 || c.P99 < c.P50 || c.CPU.Asker <= 0 {
				t.Errorf("%s, %d in flight: %+v", way, inFlight, c)
			}
			if len(c.Answered) != 2 || c.Answered[0] == 0 || c.Answered[1] == 0 || c.Answered[0]+c.Answered[1] < c.Requests {
				t.Errorf("%s, %d in flight: of %d answers %v came from workers", way, inFlight, c.Requests, c.Answered)
			}
			// What was asked before the first reading is answered after it.
			alone := way == wayRequest || inFlight == 1
			if few := c.Sent+uint64(inFlight) < c.Requests; few == alone || c.Received == 0 {
				t.Errorf("%s, %d in flight: %d requests in %d messages, answered in %d", way, inFlight, c.Requests, c.Sent, c.Received)
			}
		}
	}
	if _, err := s.measure(busOrder{Way: "pigeon", InFlight: 1, Questions: 1}); !errors.Is(err, errFailed) || !strings.Contains(err.Error(), "pigeon") {
		t.Errorf("got %v", err)
	}
}

// One and the same question goes to the two workers of its block when the client
// chooses, and to all of them when the NATS server does.
func TestBusChoice(t *testing.T) {
	s := startTestStack(t, 4)
	for way, byTwo := range map[string]bool{wayRequest: false, wayQueue: false, wayChoice: true} {
		c := s.measureMany(t, busOrder{Way: way, InFlight: 8, Questions: 1, Duration: 200 * time.Millisecond})
		a := slices.Sorted(slices.Values(c.Answered))
		few, many := a[0]+a[1], a[2]+a[3]
		if (9*few < many) != byTwo {
			t.Errorf("%s: the workers have answered %v", way, c.Answered)
		}
	}
}

type resolverFunc func(schema.Question, schema.Receiver)

func (f resolverFunc) Resolve(q schema.Question, _ time.Time, to schema.Receiver) { f(q, to) }

// One wrong answer fails each way, and so does nobody's.
func TestBusFails(t *testing.T) {
	url := startBus(t)
	asking := busAsking{Server: url, Workers: []string{"liar"}}
	for _, way := range wayNames {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := asking.measure(ctx, busOrder{Way: way, InFlight: 1, Questions: 1}); err == nil || errors.Is(err, errWrongAnswer) {
			t.Errorf("%s without workers: got %v", way, err)
		}
		cancel()
	}
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	wrong := newQuiz(2).answers[1]
	if _, err := nc.Subscribe(requestSubject, func(m *nats.Msg) { _ = m.Respond(wrong) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []bus.ServerConfig{{Network: queueNetwork}, {Network: choiceNetwork, WorkerID: "liar"}} {
		l, err := bus.Dial(bus.LinkConfig{Name: "liar", URLs: []string{url}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		cfg.Links = []*bus.Link{l}
		cfg.Resolver = resolverFunc(func(_ schema.Question, to schema.Receiver) { to.Answered(schema.Answer{Result: wrong}) })
		s, err := bus.NewServer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Leave(context.Background())
	}
	for _, way := range wayNames {
		if _, err := asking.measure(t.Context(), busOrder{Way: way, InFlight: 3, Questions: 1, Duration: 5 * time.Second}); !errors.Is(err, errWrongAnswer) {
			t.Errorf("%s: got %v", way, err)
		}
	}
}

// A failure ends a measurement that has begun.
func TestTallyFails(t *testing.T) {
	tl := newTally(newQuiz(2), 1)
	tl.measuring.Store(true)
	tl.answered(0, 1, time.Now(), tl.quiz.answers[1])
	if n, latency := tl.sum(); n != 1 || latency.TotalCount() != 1 || tl.err() != nil {
		t.Errorf("counted %d, %d; %v", n, latency.TotalCount(), tl.err())
	}
	tl.answered(0, 1, time.Now(), tl.quiz.answers[0])
	tl.fail(errors.New("a later one"))
	if n, _ := tl.sum(); n != 1 || !tl.over.Load() || !errors.Is(tl.err(), errWrongAnswer) {
		t.Errorf("counted %d; %v", n, tl.err())
	}
}

// busCells are cells of one second.
func busCells(workers int, way string, requests uint64, asker, nats, working time.Duration) busCell {
	return busCell{Way: way, Workers: workers, InFlight: 64, Servers: 1, Requests: requests, Took: time.Second, P50: time.Millisecond, P99: 2 * time.Millisecond,
		CPU: busCPU{asker, nats, working}, Sent: requests / 10, Received: requests / 5, Answered: []uint64{requests / 4, 3 * requests / 4}}
}

func TestBusReport(t *testing.T) {
	const ms = time.Millisecond
	r := busReport{Cells: []busCell{
		busCells(2, wayChoice, 2000, 10*ms, 6*ms, 4*ms), busCells(2, wayRequest, 1000, 50*ms, 30*ms, 20*ms), // 2 x, 10 us of 100
		busCells(2, wayRequest, 2000, 40*ms, 40*ms, 20*ms), busCells(2, wayChoice, 8000, 80*ms, 48*ms, 32*ms), // 4 x, 20 us of 50
		busCells(4, wayQueue, 1000, 10*ms, 6*ms, 4*ms),
	}}
	row := func(way string, workers int) busRow {
		return busRow{Way: way, Workers: workers, InFlight: 64, P50: 1000, P99: 2000, Sent: 0.1, Received: 0.2, Largest: 0.75}
	}
	request, choice, queue := row(wayRequest, 2), row(wayChoice, 2), row(wayQueue, 4)
	request.PerSecond, request.Lowest, request.Highest = 1500, 1000, 2000
	request.Asker, request.NATS, request.WorkersCPU, request.CPU = 35, 25, 15, 75
	choice.PerSecond, choice.Lowest, choice.Highest = 5000, 2000, 8000
	choice.Asker, choice.NATS, choice.WorkersCPU, choice.CPU = 7.5, 4.5, 3, 15
	choice.RateToRequest, choice.CPUToRequest, choice.LowestCPUToRequest, choice.HighestCPUToRequest = 3, 0.25, 0.1, 0.4
	queue.PerSecond, queue.Lowest, queue.Highest = 1000, 1000, 1000
	queue.Asker, queue.NATS, queue.WorkersCPU, queue.CPU = 10, 6, 4, 20
	if diff := cmp.Diff([][]busRow{{request, choice}, {queue}}, r.rows(), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var b strings.Builder
	if err := r.print(&b); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"NATS servers: 1, workers: 2, questions in flight: 64",
		"by-worker 5000 (2000 8000) 1000 2000 7.50 4.50 3.00 15.00 0.100 0.200 75 % 3.00 0.25 (0.10 0.40)",
		"queue-group 1000 (1000 1000) 1000 2000 10.00 6.00 4.00 20.00 0.100 0.200 75 % - - (- -)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
}
