package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ommer/ommer/deploy/child"
)

// config is what the flags say.
type config struct {
	bin   string
	short bool
	only  string
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == raidCommand {
		os.Exit(exitCode(raid(os.Stdin, os.Stdout)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(exitCode(run(ctx, os.Args[1:], os.Stdout, os.Stderr)))
}

func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, "hostile:", err)
		return 2
	default:
		fmt.Fprintln(os.Stderr, "hostile:", err)
		return 1
	}
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("hostile", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.bin, "bin", "bin", "`folder` with ommer, ommer-edge, ommer-worker and nats-server")
	f.BoolVar(&c.short, "short", false, "shorter, and without --only each attack once, for continuous integration")
	f.StringVar(&c.only, "only", "", "run the attacks whose name has this `text` in it")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, usageError{err}
	}
	if f.NArg() > 0 {
		return c, usageError{fmt.Errorf("unexpected argument %q", f.Arg(0))}
	}
	if len(c.rounds()) == 0 {
		return c, usageError{fmt.Errorf("--only %q: no attack has this in its name", c.only)}
	}
	return c, nil
}

// rounds are those that were asked for: who asks for some means every way of them.
func (c config) rounds() (list []*round) {
	for _, r := range rounds(c.short && c.only == "") {
		if strings.Contains(r.name(), c.only) {
			list = append(list, r)
		}
	}
	return list
}

// times are the edge's time-outs, short but not so short that a busy machine takes the
// honest for slow, how long attackers act, and how long the honest are
// measured between attacks.
func (c config) times() (unit, act, quiet time.Duration) {
	if c.short {
		return 2 * time.Second, 500 * time.Millisecond, 150 * time.Millisecond
	}
	return 2 * time.Second, 1500 * time.Millisecond, 750 * time.Millisecond
}

// errFailed: something was not as it has to be, and has been printed.
var errFailed = errors.New("the edge did not withstand")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	began := time.Now()
	unit, act, quiet := c.times()
	s, err := startStack(ctx, c.bin, edgeFlags(unit))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	a := &arena{stack: s, unit: unit, act: act, quiet: quiet}
	list := c.rounds()
	complaints, err := a.fight(ctx, list, stdout)
	if err != nil {
		return err
	}
	if err := printTable(stdout, list); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n%d attacks in %v, %d complaints\n", len(list), time.Since(began).Round(time.Second), complaints)
	if complaints > 0 {
		return errFailed
	}
	return nil
}

// fight runs the rounds and looks at what is left of them, and returns how much is not
// as it has to be.
func (a *arena) fight(ctx context.Context, list []*round, stdout io.Writer) (complaints int, err error) {
	qs, err := questions()
	if err != nil {
		return 0, err
	}
	if err = learn(ctx, a.stack.site, qs); err != nil {
		return 0, err
	}
	if a.rest, err = a.stack.usage(ctx); err != nil {
		return 0, err
	}
	a.watch = startWatch(ctx, a.stack)
	defer a.watch.end()
	if a.crowd, err = startCrowd(ctx, a.stack.site, qs); err != nil {
		return 0, err
	}
	defer a.crowd.end()
	fmt.Fprintf(stdout, "at rest    %d MiB, %d files, %d goroutines\n", mib(a.rest.RSS), a.rest.Files, a.rest.Goroutines)
	first := a.crowd.open()
	if err = a.rested(ctx, first); err != nil {
		return 0, err
	}
	a.last = a.crowd.read(first)
	for _, r := range list {
		if err = a.run(ctx, r); err != nil {
			return 0, fmt.Errorf("%s: %w", r.name(), err)
		}
		r.print(stdout)
		complaints += len(r.Complaints)
	}
	a.crowd.end()
	a.watch.end()
	left, err := a.returned(ctx)
	if err != nil {
		complaints++
		fmt.Fprintf(stdout, "\nFAILED     %v\n", err)
	}
	fmt.Fprintf(stdout, "\nat the end %d MiB, %d connections, %d files, %d goroutines\n", mib(left.RSS), left.Conns, left.Files, left.Goroutines)
	return complaints, nil
}

// When everybody has left, the edge gives its memory back (bus/process/heap.go, after
// some quiet seconds): to what it had at rest and restSlack, which is for what the
// runtime keeps of its own: the stacks and tables of what was once there.
const (
	restSlack  = 48 << 20
	returnTime = 30 * time.Second
)

// returned waits until the edge is as it was before anybody came. Reading its metrics
// would keep it from being quiet, so that is done once.
func (a *arena) returned(ctx context.Context) (u usage, err error) {
	if err := a.empty(ctx); err != nil {
		return u, err
	}
	high := a.rest.RSS + restSlack
	for end := time.Now().Add(returnTime); ; {
		rss, err := child.RSS(a.stack.edge.PID())
		if err != nil {
			return u, err
		}
		if rss <= high || time.Now().After(end) {
			break
		}
		if !pause(ctx, 200*time.Millisecond) {
			return u, ctx.Err()
		}
	}
	if u, err = a.stack.usage(ctx); err != nil {
		return u, err
	}
	var errs []error
	if u.RSS > high {
		errs = append(errs, fmt.Errorf("the edge has %d MiB when everybody has left, at rest it had %d", mib(u.RSS), mib(a.rest.RSS)))
	}
	return u, errors.Join(append(errs, a.stillHeld(u))...)
}

// empty waits until the edge has no connection.
func (a *arena) empty(ctx context.Context) error {
	for end := time.Now().Add(releaseTime); ; {
		u, err := a.stack.usage(ctx)
		switch {
		case err != nil || u.Conns == 0:
			return err
		case time.Now().After(end):
			return fmt.Errorf("%d connections are open when everybody has left", u.Conns)
		case !pause(ctx, 50*time.Millisecond):
			return ctx.Err()
		}
	}
}
