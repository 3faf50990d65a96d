package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/deploy/child"
)

// crowd is the processes that hold idle connections.
type crowd struct {
	members []*member
	killed  func() error // why the processes were ended, nil if they were not
}

// member is one of them.
type member struct {
	*role
	open atomic.Int64
}

// crowdReport is how often a crowd that opens connections says how many there are.
const crowdReport = 5 * time.Second

// startCrowd starts a process for each of what there is to hold, and returns when
// every connection has had its exchange.
func startCrowd(ctx context.Context, what []holding, opened func(n int)) (*crowd, error) {
	c := &crowd{killed: ctx.Err}
	for _, w := range what {
		m, err := startMember(ctx, w)
		if err != nil {
			return nil, errors.Join(err, c.stop())
		}
		c.members = append(c.members, m)
	}
	ended := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		tick := time.NewTicker(crowdReport)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				opened(c.open())
			case <-ended:
				return
			}
		}
	})
	_, err := c.each(ctx, (*member).state)
	close(ended)
	reporting.Wait()
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	opened(c.open())
	return c, nil
}

func startMember(ctx context.Context, what holding) (*member, error) {
	r, err := startRole(ctx, holdCommand, what)
	if err != nil {
		return nil, errors.Join(errMember, err)
	}
	return &member{role: r}, nil
}

// errMember: a process that holds connections did not do what it was told.
var errMember = errors.New("a process that holds the connections ended")

// state returns the next line that says that all is open.
func (m *member) state() (held, error) {
	for {
		var h held
		if err := m.hear.Decode(&h); err != nil {
			return h, errors.Join(errMember, err)
		}
		m.open.Store(int64(h.Open))
		if h.All {
			return h, nil
		}
	}
}

// do has the process do something, and returns the state after it.
func (m *member) do(command string) (held, error) {
	if err := m.tell.Encode(command); err != nil {
		return held{}, errors.Join(errMember, err)
	}
	return m.state()
}

func (c *crowd) open() int {
	n := int64(0)
	for _, m := range c.members {
		n += m.open.Load()
	}
	return int(n)
}

// do has every process do something at the same time, and returns the sum of them.
func (c *crowd) do(ctx context.Context, command string) (held, error) {
	return c.each(ctx, func(m *member) (held, error) { return m.do(command) })
}

// each calls f with all members at the same time, and sums up what they hold. The
// end of ctx ends the processes, and with them the calls.
func (c *crowd) each(ctx context.Context, f func(*member) (held, error)) (held, error) {
	var sum held
	var errs []error
	var mu sync.Mutex
	var calls sync.WaitGroup
	for _, m := range c.members {
		calls.Go(func() {
			h, err := f(m)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
			sum = sum.plus(h)
		})
	}
	calls.Wait()
	if ctx.Err() != nil {
		return sum, ctx.Err() // that the processes ended says nothing more
	}
	return sum, errors.Join(errs...)
}

func (h held) plus(o held) held {
	if h.Problem == "" {
		h.Problem = o.Problem
	}
	return held{h.Open + o.Open, h.All || o.All, h.Answered + o.Answered, h.Failed + o.Failed, h.Pings + o.Pings, h.Problem}
}

// stop has them close their connections, and waits for their end.
func (c *crowd) stop() error {
	errs := make([]error, len(c.members))
	var stops sync.WaitGroup
	for i, m := range c.members {
		stops.Go(func() {
			if err := m.stop(); err != nil && c.killed() == nil {
				errs[i] = fmt.Errorf("%w: %w", errMember, err)
			}
		})
	}
	stops.Wait()
	return errors.Join(errs...)
}

// rss is the resident memory of all of them, in bytes.
func (c *crowd) rss() (sum int64, err error) {
	for _, m := range c.members {
		n, err := child.RSS(m.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
