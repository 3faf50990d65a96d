package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"
)

// connectionsCommand is the argument that makes this program hold as many
// connections as the machine can, over many processes.
const connectionsCommand = "connections"

// kind is a kind of connections to hold.
type kind struct {
	name, path string
	pings      bool // else they are never pinged
}

var kinds = []kind{
	{"ws", pathWS, false},
	{"ws-ping", pathWS, true},
	{"wss", pathWSS, false},
	{"wss-ping", pathWSS, true},
	{"http", pathHTTP, false},
	{"https", pathHTTPS, false},
}

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// connectionsConfig is what the flags of the command say.
type connectionsConfig struct {
	bin   string
	conns int
	edges int // 0: as many as the connections need
	only  []string
	ping  time.Duration
	rest  time.Duration
	json  string

	files int // that a process may open for connections
}

// moreThanMean is by how much the connections of one edge may exceed the mean: the
// kernel spreads them by a hash, and of 16,000 the deviation is 1 %.
const moreThanMean = 1.1

func parseConnections(args []string, stderr io.Writer) (connectionsConfig, error) {
	var c connectionsConfig
	var only string
	f := flag.NewFlagSet("bench "+connectionsCommand, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.bin, "bin", "bin", "`folder` with ommer, ommer-edge, ommer-worker, nats-server and geth")
	f.IntVar(&c.conns, "connections", 150_000, "connections to hold")
	f.IntVar(&c.edges, "edges", 0, "edges that share the port (default as many as the file limit asks for)")
	f.StringVar(&only, "only", "ws,ws-ping,wss", "`kinds` of connections, one after the other, of "+strings.Join(kindNames(), ","))
	f.DurationVar(&c.ping, "ping", 30*time.Second, "silence after which an edge pings, for the kinds that are pinged")
	f.DurationVar(&c.rest, "rest", settleReadings*settlePoll, "how long memory must not move before it is read")
	f.StringVar(&c.json, "json", "", "`file` to write the report to as JSON as well")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, usage{err}
	}
	c.only = strings.Split(only, ",")
	for _, name := range c.only {
		if !slices.Contains(kindNames(), name) {
			return c, usage{fmt.Errorf("--only %s: there is no %q, want some of %s", only, name, strings.Join(kindNames(), ","))}
		}
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return c, fmt.Errorf("how many files a process may open: %w", err)
	}
	c.files = int(min(limit.Max, 1<<20)) - spareFiles
	if c.edges == 0 && c.files > 0 {
		c.edges = processes(int(moreThanMean*float64(c.conns)), c.files)
	}
	switch {
	case f.NArg() > 0:
		return c, usage{fmt.Errorf("unexpected argument %q", f.Arg(0))}
	case c.conns < 1 || c.conns > 2_000_000:
		return c, usage{errors.New("--connections: want 1 to 2000000")}
	case c.files < 1:
		return c, usage{fmt.Errorf("a process may open %d files here (ulimit -Hn), too few", limit.Max)}
	case c.edges < 1 || c.edges > 200:
		return c, usage{errors.New("--edges: want 1 to 200")}
	case c.edges > 1 && int(moreThanMean*float64(c.conns))/c.edges > c.files || c.conns/c.edges > c.files:
		return c, usage{fmt.Errorf("--edges %d: too few, a process may open %d files here (ulimit -Hn)", c.edges, limit.Max)}
	case c.ping < time.Second:
		return c, usage{errors.New("--ping: want at least 1s")}
	case c.rest < settlePoll || c.rest > settleAtMost:
		return c, usage{fmt.Errorf("--rest: want %v to %v", settlePoll, settleAtMost)}
	}
	return c, nil
}

// processes is how many it takes to hold n connections.
func processes(n, each int) int { return max(1, (n+each-1)/each) }

// connectionsAtMost bounds what one kind may take. It is shorter than the time-outs of
// connections that are not to be used.
const connectionsAtMost = 10 * time.Minute

func runConnections(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	c, err := parseConnections(args, stderr)
	if err != nil {
		return err
	}
	progress := func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	s, err := startStack(ctx, c.bin, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	r := connectionsReport{Machine: thisMachine(), Programs: s.versions, Conns: c.conns, Edges: c.edges, Files: c.files + spareFiles}
	for i, name := range c.only {
		k := kinds[slices.Index(kindNames(), name)]
		one, err := s.crowded(ctx, c, k, i, progress)
		if err != nil {
			return fmt.Errorf("%d connections of %s: %w", c.conns, k.name, err)
		}
		r.Kinds = append(r.Kinds, one)
		if err = one.print(stdout); err != nil {
			return err
		}
	}
	if err = r.print(stdout); err != nil {
		return err
	}
	if err = writeJSON(c.json, r); err != nil {
		return err
	}
	return r.failed()
}
