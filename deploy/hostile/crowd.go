package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// The honest load: regulars ask on connections that stay open, newcomers open a
// connection, ask once and leave. Both keep to a schedule (an open loop): a client that
// is late asks at once, and its latency counts from when it was to ask.
const (
	regulars     = 20
	regularRate  = 500 // questions per second, all together
	newcomerRate = 20  // connections per second
)

// crowd is the honest clients.
type crowd struct {
	site      site
	questions []question
	stop      context.CancelFunc
	wg        sync.WaitGroup

	mu      sync.Mutex
	windows []*window
}

// window is what came of the questions that were due in a stretch of time.
type window struct {
	from     time.Time
	asked    []time.Duration // regulars
	joined   []time.Duration // newcomers, opening the connection included
	wrong    int
	failed   int
	pending  int // begun and not answered
	examples []string
}

// maxExamples is how many failures of a window are kept to be printed.
const maxExamples = 3

// startCrowd opens the regulars' connections and begins to ask.
func startCrowd(ctx context.Context, s site, qs []question) (*crowd, error) {
	ctx, stop := context.WithCancel(ctx)
	c := &crowd{site: s, questions: qs, stop: stop, windows: []*window{{from: time.Now()}}}
	clients := make([]*client, regulars)
	for i := range clients {
		var err error
		if clients[i], err = dial(ctx, s, wires[i%len(wires)]); err != nil {
			c.end()
			return nil, err
		}
	}
	for i, one := range clients {
		c.wg.Go(func() { c.regular(ctx, i, one) })
	}
	c.wg.Go(func() { c.newcomers(ctx) })
	return c, nil
}

// end lets everybody leave.
func (c *crowd) end() {
	c.stop()
	c.wg.Wait()
}

// regular asks on one connection, and on another one when that has failed.
func (c *crowd) regular(ctx context.Context, n int, one *client) {
	const interval = time.Second * regulars / regularRate
	due := time.Now().Add(interval * time.Duration(n) / regulars)
	for id := n * 997; pause(ctx, time.Until(due)); id++ {
		w := c.begin(due)
		var err error
		if one == nil {
			one, err = dial(ctx, c.site, wires[n%len(wires)])
		}
		if err == nil {
			err = c.ask(ctx, one, id)
		}
		if err != nil && one != nil {
			one.close()
			one = nil
		}
		c.record(ctx, w, due, true, err)
		due = due.Add(interval)
	}
	if one != nil {
		one.close()
	}
}

// newcomers come one after the other, whatever became of those before.
func (c *crowd) newcomers(ctx context.Context) {
	const interval = time.Second / newcomerRate
	due := time.Now()
	for n := 0; pause(ctx, time.Until(due)); n++ {
		when, w := due, c.begin(due)
		c.wg.Go(func() {
			one, err := dial(ctx, c.site, wires[n%len(wires)])
			if err == nil {
				err = c.ask(ctx, one, n)
				one.close()
			}
			c.record(ctx, w, when, false, err)
		})
		due = due.Add(interval)
	}
}

func (c *crowd) ask(ctx context.Context, one *client, id int) error {
	q := &c.questions[id%len(c.questions)]
	answer, err := one.ask(ctx, q.call(id))
	if err != nil {
		return err
	}
	return q.check(id, answer)
}

// begin returns the window that a question belongs to: the one in which it is due.
func (c *crowd) begin(due time.Time) *window {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.windows[0]
	for _, later := range c.windows[1:] {
		if due.Before(later.from) {
			break
		}
		w = later
	}
	w.pending++
	return w
}

// record counts what came of a question. What is cut off by the end of the crowd is
// not a failure.
func (c *crowd) record(ctx context.Context, w *window, due time.Time, regular bool, err error) {
	took := time.Since(due)
	c.mu.Lock()
	defer c.mu.Unlock()
	w.pending--
	if ctx.Err() != nil {
		return
	}
	switch {
	case err == nil && regular:
		w.asked = append(w.asked, took)
		return
	case err == nil:
		w.joined = append(w.joined, took)
		return
	case errors.Is(err, errWrong):
		w.wrong++
	default:
		w.failed++
	}
	if len(w.examples) < maxExamples {
		who := "newcomer"
		if regular {
			who = "regular"
		}
		text := fmt.Sprintf("%s after %v: %v", who, took.Round(time.Millisecond), err)
		w.examples = append(w.examples, strings.ReplaceAll(text, c.site.Key, "KEY")) // some errors name the URL
	}
}

// pending says how many questions of a window are not answered.
func (c *crowd) pending(w *window) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return w.pending
}

// open begins a new window.
func (c *crowd) open() *window {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &window{from: time.Now()}
	if c.windows = append(c.windows, w); len(c.windows) > keptWindows {
		c.windows = c.windows[1:]
	}
	return w
}

// keptWindows is more than are begun while a question can wait for its answer.
const keptWindows = 16

// read returns what came of a window so far.
func (c *crowd) read(w *window) tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := tally{Right: len(w.asked) + len(w.joined), Wrong: w.wrong, Failed: w.failed, Examples: slices.Clone(w.examples)}
	t.P50, t.P99 = percentile(w.asked, 50), percentile(w.asked, 99)
	t.Join50, t.JoinMax = percentile(w.joined, 50), percentile(w.joined, 100)
	return t
}

// tally is what came of a window. The durations are of right answers.
type tally struct {
	Right, Wrong, Failed int
	Examples             []string
	P50, P99             time.Duration // regulars
	Join50, JoinMax      time.Duration // newcomers
}

// percentile returns the least duration that p percent do not exceed, 0 of none.
func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)*p+99)/100-1]
}
