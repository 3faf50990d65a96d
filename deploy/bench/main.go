package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// config is what the flags say.
type config struct {
	bin      string
	duration time.Duration // measured, of each cell
	rounds   int
	conns    []int
	idle     int
	only     []string
	json     string
}

// Parts of the run that --only names, beside the paths.
const idlePart = "idle"

func main() {
	playRole()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case connectionsCommand:
			os.Exit(exitCode(runConnections(ctx, os.Args[2:], os.Stdout, os.Stderr)))
		case busCommand:
			os.Exit(exitCode(runBus(ctx, os.Args[2:], os.Stdout, os.Stderr)))
		}
	}
	os.Exit(exitCode(run(ctx, os.Args[1:], os.Stdout, os.Stderr)))
}

// playRole does what a run has this program do in other processes, and ends with it.
func playRole() {
	if len(os.Args) != 2 {
		return
	}
	switch os.Args[1] {
	case holdCommand:
		os.Exit(exitCode(hold(os.Stdin, os.Stdout)))
	case yardstickCommand:
		os.Exit(exitCode(measureAgainst(os.Stdin)))
	case busWorkerCommand:
		os.Exit(exitCode(workOnBus(os.Stdin, os.Stdout)))
	case busAskerCommand:
		os.Exit(exitCode(askOnBus(os.Stdin, os.Stdout)))
	}
}

func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, new(usage)):
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
}

// usage is a mistake in the command line.
type usage struct{ error }

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	var conns, only string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.bin, "bin", "bin", "`folder` with ommer, ommer-edge, ommer-worker, nats-server and geth")
	f.DurationVar(&c.duration, "duration", 4*time.Second, "how long each cell is measured in a round")
	f.IntVar(&c.rounds, "rounds", 3, "rounds over all paths")
	f.StringVar(&conns, "conns", "64,2000", "`numbers` of connections to measure requests with")
	f.IntVar(&c.idle, "idle", 5000, "idle connections to measure memory with, up to 19000")
	f.StringVar(&only, "only", "", "`parts` to run, of "+strings.Join(parts(), ",")+" (default all)")
	f.StringVar(&c.json, "json", "", "`file` to write the report to as JSON as well")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, usage{err}
	}
	var err error
	if c.conns, err = numbers("--conns", conns); err != nil {
		return c, err
	}
	c.only = parts()
	if only != "" {
		c.only = strings.Split(only, ",")
	}
	for _, p := range c.only {
		if !slices.Contains(parts(), p) {
			return c, usage{fmt.Errorf("--only %s: there is no %q, want some of %s", only, p, strings.Join(parts(), ","))}
		}
	}
	switch {
	case f.NArg() > 0:
		return c, usage{fmt.Errorf("unexpected argument %q", f.Arg(0))}
	case c.duration < 100*time.Millisecond:
		// CPU time comes in ticks of 10 ms.
		return c, usage{errors.New("--duration: want at least 100ms")}
	case c.rounds < 1:
		return c, usage{errors.New("--rounds: want at least 1")}
	case c.idle < 1:
		return c, usage{errors.New("--idle: want at least 1")}
	}
	return c, c.checkFiles()
}

// numbers reads the list that a flag holds.
func numbers(flag, list string) (values []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, usage{fmt.Errorf("%s %s: want positive numbers separated by commas", flag, list)}
		}
		values = append(values, n)
	}
	return values, nil
}

func parts() []string { return append(slices.Clone(pathNames), idlePart) }

// spareFiles is how many files a process may need beside its connections.
const spareFiles = 256

// checkFiles says early that a process cannot open as many files as asked for.
func (c config) checkFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("how many files a process may open: %w", err)
	}
	if most := max(c.idle, slices.Max(c.conns)); uint64(most)+spareFiles > limit.Max {
		return usage{fmt.Errorf("%d connections are too many: a process may open %d files here (ulimit -Hn)", most, limit.Max)}
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	progress := func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	s, err := startStack(ctx, c.bin, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	r := report{Machine: thisMachine(), Programs: s.versions, Settings: settings{Duration: c.duration.String(), Rounds: c.rounds}, AnswerBytes: s.answerBytes}
	if r.Cells, err = measureRequests(ctx, c, s, progress); err != nil {
		return err
	}
	if slices.Contains(c.only, idlePart) {
		if r.Idle, err = measureIdle(ctx, c.idle, s, progress); err != nil {
			return err
		}
	}
	if err = r.print(stdout); err != nil {
		return err
	}
	return writeJSON(c.json, r)
}

// writeJSON writes a report to a file if it is to be written.
func writeJSON(file string, report any) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
