package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// busCommand is the argument that makes this program measure the bus alone.
const busCommand = "bus"

// busConfig is what the flags of the command say.
type busConfig struct {
	bin      string
	servers  int
	workers  []int
	inFlight []int
	rounds   int
	duration time.Duration
	only     []string
	json     string
}

// Bounds of the flags.
const (
	mostWorkers  = 64
	mostInFlight = 30_000 // below what one worker takes at a time
)

func parseBus(args []string, stderr io.Writer) (busConfig, error) {
	var c busConfig
	var workers, inFlight, only string
	f := flag.NewFlagSet("bench "+busCommand, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.bin, "bin", "bin", "`folder` with nats-server")
	f.IntVar(&c.servers, "servers", 1, "NATS servers, 1 or a cluster of 3")
	f.StringVar(&workers, "workers", "1,4", "`numbers` of workers to measure with")
	f.StringVar(&inFlight, "in-flight", "1,16,256,4096", "`numbers` of questions that are unanswered at a time")
	f.IntVar(&c.rounds, "rounds", 3, "rounds over all ways")
	f.DurationVar(&c.duration, "duration", 2*time.Second, "how long each cell is measured in a round")
	f.StringVar(&only, "only", strings.Join(wayNames, ","), "`ways` to ask")
	f.StringVar(&c.json, "json", "", "`file` to write the report to as JSON as well")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, usage{err}
	}
	var err error
	if c.workers, err = numbers("--workers", workers); err != nil {
		return c, err
	}
	if c.inFlight, err = numbers("--in-flight", inFlight); err != nil {
		return c, err
	}
	c.only = strings.Split(only, ",")
	for _, name := range c.only {
		if !slices.Contains(wayNames, name) {
			return c, usage{fmt.Errorf("--only %s: there is no %q, want some of %s", only, name, strings.Join(wayNames, ","))}
		}
	}
	switch {
	case f.NArg() > 0:
		return c, usage{fmt.Errorf("unexpected argument %q", f.Arg(0))}
	case c.servers != 1 && c.servers != 3:
		return c, usage{errors.New("--servers: want 1 or 3")}
	case slices.Max(c.workers) > mostWorkers:
		return c, usage{fmt.Errorf("--workers: want up to %d", mostWorkers)}
	case slices.Max(c.inFlight) > mostInFlight:
		return c, usage{fmt.Errorf("--in-flight: want up to %d", mostInFlight)}
	case c.rounds < 1:
		return c, usage{errors.New("--rounds: want at least 1")}
	case c.duration < 100*time.Millisecond:
		// CPU time comes in ticks of 10 ms.
		return c, usage{errors.New("--duration: want at least 100ms")}
	}
	return c, nil
}

func runBus(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parseBus(args, stderr)
	if err != nil {
		return err
	}
	progress := func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	r := busReport{Machine: thisMachine(), Settings: settings{Duration: c.duration.String(), Rounds: c.rounds}}
	for _, workers := range c.workers {
		if err := c.measure(ctx, workers, &r, progress); err != nil {
			return err
		}
	}
	return errors.Join(r.print(stdout), writeJSON(c.json, r))
}

// measure measures every way in every round, with so many workers.
func (c busConfig) measure(ctx context.Context, workers int, r *busReport, progress func(string, ...any)) (err error) {
	progress("starting NATS servers (%d) from %s, workers (%d) and an asker", c.servers, c.bin, workers)
	s, err := startBusStack(ctx, c.bin, c.servers, workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	r.Program = s.version
	for _, inFlight := range c.inFlight {
		for round := range c.rounds {
			for _, way := range turned(c.only, round) {
				m, err := s.measure(busOrder{Way: way, InFlight: inFlight, Questions: quizQuestions, WarmUp: warmUp, Duration: c.duration})
				if err != nil {
					return err
				}
				r.Cells = append(r.Cells, m)
				progress("%2d workers, %5d in flight, round %d of %d: %-11s %7.0f requests/s", workers, inFlight, round+1, c.rounds, way, m.perSecond())
			}
		}
	}
	return nil
}
