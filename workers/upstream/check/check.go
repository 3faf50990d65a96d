package check

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ommer/ommer/workers/upstream"
)

// DefaultTimeout is what each node is given.
const DefaultTimeout = 30 * time.Second

// Config says which nodes to check.
type Config struct {
	// URLs of the nodes: http, https, ws or wss; at most upstream.MaxNodes.
	URLs []string
	// Timeout bounds the check of each node as a whole; a single call gets a quarter
	// of it. Default DefaultTimeout.
	Timeout time.Duration
	// Progress is told what is being found out of a node, by its index, and "" when
	// that one is done. It is called from several goroutines. Default: nobody is told.
	Progress func(node int, what string)
}

// ErrConfig is wrapped by what Run says of a Config that cannot work.
var ErrConfig = errors.New("check")

func (c Config) withDefaults() (Config, error) {
	if n := len(c.URLs); n == 0 || n > upstream.MaxNodes {
		return c, fmt.Errorf("%w: %d URLs, want 1 to %d", ErrConfig, n, upstream.MaxNodes)
	}
	for i, raw := range c.URLs {
		if err := new(upstream.URL).UnmarshalText([]byte(raw)); err != nil {
			return c, fmt.Errorf("%w: URL %d of %d: %w", ErrConfig, i+1, len(c.URLs), err)
		}
	}
	if c.Timeout < 0 {
		return c, fmt.Errorf("%w: the time is negative", ErrConfig)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Progress == nil {
		c.Progress = func(int, string) {}
	}
	return c, nil
}

// Run checks the nodes and returns a Report of each, in the order of their URLs. Its
// error is about the Config, or that ctx has ended; a node's failures are in its Report.
func Run(ctx context.Context, cfg Config) ([]Report, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	reports := make([]Report, len(cfg.URLs))
	var nodes sync.WaitGroup
	for i, name := range upstream.Names(cfg.URLs) {
		reports[i].Node = name
		nodes.Go(func() {
			n := newNode(&reports[i], cfg.URLs[i], cfg.Timeout, func(what string) { cfg.Progress(i, what) })
			n.check(ctx, cfg.Timeout)
			cfg.Progress(i, "")
		})
	}
	nodes.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	compare(reports)
	for i := range reports {
		reports[i].judge()
	}
	return reports, nil
}

// compare tells nodes apart that are behind the others, or of another chain than the
// first one that told its own, which is the chain that workers would serve.
func compare(reports []Report) {
	var first *Report
	best := uint64(0)
	for i := range reports {
		r := &reports[i]
		if r.Chain == nil {
			continue
		}
		if first == nil {
			first = r
		}
		if r.Chain.ID != first.Chain.ID {
			r.Chain.Other = fmt.Sprintf("chain %d of %s", first.Chain.ID, first.Node)
			continue
		}
		if r.Chain.Genesis != "" && first.Chain.Genesis != "" && r.Chain.Genesis != first.Chain.Genesis {
			r.Chain.Other = "the genesis block of " + first.Node
			continue
		}
		if r.Head != nil {
			best = max(best, r.Head.Number)
		}
	}
	for i := range reports {
		if r := &reports[i]; r.Head != nil && r.Chain.Other == "" {
			behind := best - r.Head.Number
			r.Head.Behind = &behind
		}
	}
}
