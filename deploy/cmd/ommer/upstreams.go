package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/workers/upstream"
	"github.com/ommer/ommer/workers/upstream/check"
)

// upstreams are the commands about Ethereum nodes.
type upstreams struct {
	Check checkUpstreams `cmd:"" help:"Find out what nodes can do for lookups: history, uncle methods, batches, latency."`
}

type checkUpstreams struct {
	URLs []upstream.URL `arg:"" optional:"" name:"url" help:"Nodes: http, https, ws or wss. Default: those of $$OMMER_UPSTREAM, comma-separated, as workers read it."`

	Timeout time.Duration `env:"OMMER_UPSTREAMS_CHECK_TIMEOUT" default:"30s" help:"Time for each node as a whole; they are checked side by side. A single call gets a quarter of it. Default ${default}."`
	JSON    bool          `name:"json" env:"OMMER_UPSTREAMS_CHECK_JSON" help:"Print a report for programs in place of the table."`
}

// Help is the end of the help text.
func (c *checkUpstreams) Help() string {
	return `For example

  ommer upstreams check http://127.0.0.1:8545 wss://mainnet.example.org/v3/KEY
  OMMER_UPSTREAM=https://mainnet.example.org/v3/KEY ommer upstreams check --json | jq '.nodes[].lookups'

Every node is asked for blocks and uncles, and what it says is verified by the hashes in its own
headers. A "!" marks what keeps it from answering, or makes it slow or expensive to use. What is
said at the end of each node is what workers would use it for, and what to add.

It takes about 120 calls of a node that has the whole history, 100 of them in one batch, and 30 to
60 more to find the first block of one that does not; on a chain without uncles up to 300 more.
Providers may bill them, and the table says how many they were.

Arguments can be read by everybody on this machine; to keep keys out of them, use the environment.
Neither the table nor the report shows more of a URL than its host and port.

The exit code is 0 when every node can answer all lookups of its chain, 1 when one cannot, 2 for a
mistake in the command line.`
}

// Validate says what cannot be meant.
func (c *checkUpstreams) Validate() error {
	if c.Timeout < time.Millisecond || c.Timeout > time.Hour {
		return errors.New("--timeout: want 1ms to 1h")
	}
	return nil
}

// nodes are the URLs to check. Workers' environment holds theirs, out of sight of
// others on the machine.
func (c *checkUpstreams) nodes() (urls []string) {
	for _, u := range c.URLs {
		urls = append(urls, string(u))
	}
	if len(urls) > 0 {
		return urls
	}
	for u := range strings.SplitSeq(os.Getenv("OMMER_UPSTREAM"), ",") {
		if u = strings.TrimSpace(u); u != "" {
			urls = append(urls, u)
		}
	}
	return urls
}

// Run implements the command.
func (c *checkUpstreams) Run(std streams) error {
	ctx, stop := interruptible()
	defer stop()
	urls := c.nodes()
	if len(urls) == 0 {
		return process.Usage{Err: errors.New("want the URL of a node, for example http://127.0.0.1:8545\nTry 'ommer upstreams check --help'")}
	}
	p := newCheckProgress(std.err, upstream.Names(urls))
	reports, err := check.Run(ctx, check.Config{URLs: urls, Timeout: c.Timeout, Progress: p.tell})
	p.end()
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("stopped")
	case errors.Is(err, check.ErrConfig):
		return process.Usage{Err: err}
	case err != nil:
		return err
	}
	if c.JSON {
		err = printReports(std.out, reports)
	} else {
		err = check.Print(std.out, reports, colourful(std.out))
	}
	if err != nil {
		return err
	}
	failed := 0
	for i := range reports {
		if reports[i].Lookups != check.All {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d nodes cannot answer all lookups", failed, len(reports))
	}
	return nil
}

// printReports writes the reports for programs. Their schema stands beside them:
// workers/upstream/check/report.schema.json.
func printReports(out io.Writer, reports []check.Report) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(check.Document{Version: process.Version(), Nodes: reports})
}

// colourful says that w is a terminal whose user has nothing against colour
// (https://no-color.org).
func colourful(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
