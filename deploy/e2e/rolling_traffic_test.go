//go:build e2e && linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// traffic is clients that ask at an even pace, compare every answer, and go on
// whatever happens.
type traffic struct {
	tb      testing.TB
	known   []known
	clients []*traveller
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex
	tally   tally
	ended   []int           // questions of each client that have ended
	dead    map[string]bool // addresses of edges that were killed
	example map[string]string
}

// tally is what came of the questions since the last look.
type tally struct {
	asked, right int
	wrong        int
	failed       map[string]int // by kind
	held         int            // failed, and were on a connection that a killed edge held
	slow         int            // took longer than slowCall
	longest      time.Duration
}

// callEvery is how often each client asks.
const callEvery = 75 * time.Millisecond

// slowCall is a time that nobody should notice.
const slowCall = time.Second

// startTraffic asks with those clients until the test ends or end is called.
func startTraffic(tb testing.TB, all []known, clients []*traveller) *traffic {
	tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	tr := &traffic{tb: tb, known: all, clients: clients, stop: stop, ended: make([]int, len(clients)), dead: map[string]bool{}, example: map[string]string{}}
	tr.tally.failed = map[string]int{}
	for i, c := range clients {
		tr.wg.Go(func() { tr.client(ctx, i, len(clients), c) })
	}
	tb.Cleanup(tr.end)
	return tr
}

// client runs one of the clients. They begin at different questions, and spread over
// the time between two.
func (tr *traffic) client(ctx context.Context, number, of int, c *traveller) {
	defer c.leave()
	select {
	case <-time.After(callEvery * time.Duration(number) / time.Duration(of)):
	case <-ctx.Done():
	}
	pace := time.NewTicker(callEvery)
	defer pace.Stop()
	for id := number * 997; ; id++ {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		began := time.Now()
		err := tr.known[id%len(tr.known)].ask(c, id)
		tr.count(number, time.Since(began), err)
	}
}

// count notes how a question of a client has ended.
func (tr *traffic) count(number int, took time.Duration, err error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.ended[number]++
	t := &tr.tally
	t.asked++
	t.longest = max(t.longest, took)
	if took > slowCall {
		t.slow++
	}
	broken, onConn := errors.AsType[*lostError](err)
	switch {
	case err == nil:
		t.right++
	case errors.Is(err, errWrong):
		t.wrong++
	case onConn && tr.dead[broken.addr]:
		t.held++
	default:
		kind := fmt.Sprintf("%v: %s", tr.clients[number].way, kindOf(err))
		t.failed[kind]++
		if tr.example[kind] == "" {
			tr.example[kind] = err.Error()
		}
	}
}

// kindOf is an error without what differs from one to the next.
func kindOf(err error) string {
	if e, ok := errors.AsType[*rpcError](err); ok {
		return fmt.Sprintf("error %d", e.Code)
	}
	if e, ok := errors.AsType[*statusError](err); ok {
		return fmt.Sprintf("status %d", e.status)
	}
	if _, ok := errors.AsType[*lostError](err); ok {
		return "connection lost"
	}
	return "not connected"
}

// doom notes that an edge is about to be killed, and calls on connections to it to fail,
// or that it lives again.
func (tr *traffic) doom(e *edge, dead bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, secure := range []bool{false, true} {
		tr.dead[e.at(secure)] = dead
	}
}

// more waits until n more answers were right.
func (tr *traffic) more(n int) {
	tr.tb.Helper()
	goal := tr.look().right + n
	eventually(tr.tb, time.Minute, fmt.Sprintf("%d more right answers", n), func() error {
		if got := tr.look(); got.right < goal {
			return fmt.Errorf("%d are missing; %v", goal-got.right, got)
		}
		return nil
	})
}

func (tr *traffic) look() tally {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	t := tr.tally
	t.failed = maps.Clone(t.failed)
	return t
}

// settle waits for the end of each question that is under way.
func (tr *traffic) settle() {
	tr.tb.Helper()
	tr.mu.Lock()
	before := slices.Clone(tr.ended)
	tr.mu.Unlock()
	eventually(tr.tb, 2*callTime, "the questions that are under way to end", func() error {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for i, n := range before {
			if tr.ended[i] == n {
				return fmt.Errorf("a %v waits", tr.clients[i].way)
			}
		}
		return nil
	})
}

// report logs what came of the questions since the last report, and begins anew.
func (tr *traffic) report(what string) tally {
	tr.tb.Helper()
	tr.settle()
	tr.mu.Lock()
	t, example := tr.tally, tr.example
	tr.tally, tr.example = tally{failed: map[string]int{}}, map[string]string{}
	tr.mu.Unlock()
	tr.tb.Logf("%s: %v", what, t)
	for _, kind := range slices.Sorted(maps.Keys(example)) {
		tr.tb.Logf("    such as: %s: %s", kind, example[kind])
	}
	return t
}

// unharmed reports, and checks that no question failed.
func (tr *traffic) unharmed(what string) tally {
	tr.tb.Helper()
	t := tr.report(what)
	if t.wrong > 0 || t.held > 0 || len(t.failed) > 0 {
		tr.tb.Errorf("%s: want no failure", what)
	}
	return t
}

// end stops the clients, each after the answer it waits for.
func (tr *traffic) end() {
	tr.stop()
	tr.wg.Wait()
}

func (t tally) String() string {
	kinds := make([]string, 0, len(t.failed))
	n := 0
	for _, k := range slices.Sorted(maps.Keys(t.failed)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", t.failed[k], k))
		n += t.failed[k]
	}
	s := fmt.Sprintf("asked %d, wrong %d, failed %d", t.asked, t.wrong, n)
	if n > 0 {
		s += " (" + strings.Join(kinds, ", ") + ")"
	}
	if t.held > 0 {
		s += fmt.Sprintf(", %d on connections that the killed edge held", t.held)
	}
	return s + fmt.Sprintf("; longer than 1 s: %d, longest %v", t.slow, t.longest.Round(time.Millisecond))
}
