//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// known is a question with the result that was checked once, so that under load
// comparing bytes is enough.
type known struct {
	question
	result string
}

// learn asks every uncle of the blocks once and checks the answers.
func learn(tb testing.TB, c caller, blocks []block) []known {
	tb.Helper()
	qs := unclesOf(blocks, false)
	results, err := askAll(tb.Context(), []caller{c}, qs, 100)
	if err != nil {
		tb.Fatal(err)
	}
	all := make([]known, len(qs))
	for i, q := range qs {
		if _, err := q.check(results[i]); err != nil {
			tb.Fatal(err)
		}
		all[i] = known{q, string(results[i])}
	}
	return all
}

// load is clients that ask one question after the other, each with one call in
// flight, and compare every answer.
type load struct {
	tb    testing.TB
	known []known
	stop  context.CancelFunc
	wg    sync.WaitGroup

	right  atomic.Int64
	failed atomic.Int64 // answered with an error
	wrong  atomic.Int64
	broken atomic.Int64 // clients whose connection ended, or that had no answer

	mu         sync.Mutex
	complaints []string
}

// maxComplaints bounds how many failures are kept to be printed.
const maxComplaints = 5

// startLoad asks with those callers until the test ends or end is called.
func startLoad(tb testing.TB, all []known, callers []caller) *load {
	tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{tb: tb, known: all, stop: stop}
	for i, c := range callers {
		l.wg.Go(func() { l.client(ctx, i, c) })
	}
	tb.Cleanup(func() { l.end() })
	return l
}

// client runs one of the clients. Clients begin at different questions, so that a
// worker does not get the same one from all of them at once.
func (l *load) client(ctx context.Context, number int, c caller) {
	for id := number * 997; ctx.Err() == nil; id++ {
		k := l.known[id%len(l.known)]
		err := k.ask(c, id)
		if err == nil {
			l.right.Add(1)
			continue
		}
		l.complain(err)
		if errors.Is(err, errWrong) {
			l.wrong.Add(1)
		} else if _, answered := errors.AsType[*rpcError](err); answered {
			l.failed.Add(1)
		} else {
			l.broken.Add(1)
			return
		}
	}
}

var errWrong = errors.New("wrong answer")

// ask asks a question and compares the answer. What has begun is finished when the load
// ends.
func (k known) ask(c caller, id int) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	raw, err := c.call(ctx, k.appendCall(nil, id))
	if err != nil {
		return err
	}
	got, err := result(raw, id)
	if err != nil {
		return err
	}
	if string(got) != k.result {
		return fmt.Errorf("%w: %v: got %.200s", errWrong, k.question, got)
	}
	return nil
}

func (l *load) complain(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.complaints) < maxComplaints {
		l.complaints = append(l.complaints, err.Error())
	}
}

// more waits until n more answers were right.
func (l *load) more(n int64) {
	l.tb.Helper()
	goal := l.right.Load() + n
	eventually(l.tb, time.Minute, fmt.Sprintf("%d more right answers", n), func() error {
		if got := l.right.Load(); got < goal {
			return fmt.Errorf("%d are missing; %s", goal-got, l)
		}
		return nil
	})
}

// end stops the clients, each after the answer it waits for.
func (l *load) end() {
	l.stop()
	l.wg.Wait()
}

// String is what came of the load.
func (l *load) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d right, %d failed, %d wrong, %d connections broken %q",
		l.right.Load(), l.failed.Load(), l.wrong.Load(), l.broken.Load(), l.complaints)
}
