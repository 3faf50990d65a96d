package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// asked are questions with answers that a test can give.
func asked(n int) (qs []question, answer func(string) string) {
	hashes := map[string]string{}
	for i := range n {
		q := question{Body: fmt.Sprintf("question %d", i), Hash: fmt.Sprintf("0x%064x", i)}
		qs = append(qs, q)
		hashes[q.Body] = q.Hash
	}
	return qs, func(q string) string { return `{"result":{"hash":"` + hashes[q] + `"}}` }
}

func TestLoad(t *testing.T) {
	qs, answer := asked(7)
	var served atomic.Int64
	e := answering(t, false, func(q string) string {
		served.Add(1)
		return answer(q)
	})
	readings := []cpu{{Edge: time.Second, NATS: 2, Load: 5}, {Edge: 3 * time.Second, NATS: 4, Worker: 6, Geth: 8, Load: 10}}
	l := load{dialer: dialerTo(t, e, qs), conns: 5, cpu: func() (c cpu, err error) {
		c, readings = readings[0], readings[1:]
		return c, nil
	}}
	const duration = 100 * time.Millisecond
	c, err := l.run(t.Context(), duration)
	if err != nil {
		t.Fatal(err)
	}
	if c.Requests == 0 || int64(c.Requests) >= served.Load() {
		t.Errorf("counted %d of %d: what warms up must not count", c.Requests, served.Load())
	}
	if want := (cpu{Edge: 2 * time.Second, NATS: 2, Worker: 6, Geth: 8, Load: 5}); c.CPU != want {
		t.Errorf("CPU is %+v, want %+v", c.CPU, want)
	}
	if c.Took < duration || c.P50 <= 0 || c.P99 < c.P50 {
		t.Errorf("took %v, p50 %v, p99 %v", c.Took, c.P50, c.P99)
	}
}

// A single wrong answer among many fails the run.
func TestLoadWrongAnswer(t *testing.T) {
	qs, answer := asked(7)
	var served atomic.Int64
	e := answering(t, false, func(q string) string {
		if served.Add(1) == 200 {
			q = qs[0].Body + qs[1].Body // which has no hash
		}
		return answer(q)
	})
	l := load{dialer: dialerTo(t, e, qs), conns: 3, cpu: func() (cpu, error) { return cpu{}, nil }}
	if c, err := l.run(t.Context(), time.Hour); !errors.Is(err, errWrong) {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestLoadCanceled(t *testing.T) {
	qs, answer := asked(1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := answering(t, false, func(q string) string {
		cancel()
		return answer(q)
	})
	l := load{dialer: dialerTo(t, e, qs), conns: 3, cpu: func() (cpu, error) { return cpu{}, nil }}
	if c, err := l.run(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", c, err)
	}
}

// The holding process says when every connection had its exchange, and ends with
// its input.
func TestHold(t *testing.T) {
	qs, answer := asked(2)
	var served atomic.Int64
	e := answering(t, false, func(q string) string {
		served.Add(1)
		return answer(q)
	})
	e.WS = true
	what, err := json.Marshal(holding{Endpoint: e, Questions: qs, Conns: 40})
	if err != nil {
		t.Fatal(err)
	}
	in, toHolder := io.Pipe()
	fromHolder, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := hold(in, out)
		_ = out.Close()
		ended <- err
	}()
	if _, err := toHolder.Write(what); err != nil {
		t.Fatal(err)
	}
	var said held
	if err := json.NewDecoder(fromHolder).Decode(&said); err != nil || !said.All || said.Open != 40 {
		t.Fatalf("%+v, %v", said, err)
	}
	if got := served.Load(); got != 40 {
		t.Errorf("%d exchanges, want 40", got)
	}
	select {
	case err := <-ended:
		t.Fatalf("ended before its input: %v", err)
	default:
	}
	if err := toHolder.Close(); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, fromHolder)
	if err := <-ended; err != nil {
		t.Error(err)
	}

	qs[0].Hash = qs[1].Hash
	what, _ = json.Marshal(holding{Endpoint: e, Questions: qs, Conns: 1})
	if err := hold(strings.NewReader(string(what)), io.Discard); !errors.Is(err, errWrong) {
		t.Errorf("with a wrong answer: %v", err)
	}
}
