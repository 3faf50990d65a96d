package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// config is what the flags say.
type config struct {
	bin      string
	duration time.Duration
	seed     uint64
	overlap  bool
	only     string
	json     string
	keep     string
	list     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(exitCode(command(ctx, os.Args[1:])))
}

// command runs one of the program's three parts: the caller's, the same within the
// sandbox, and an upstream node.
func command(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == upstreamCommand {
		return runUpstream(ctx, args[1:])
	}
	c, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	if c.list {
		return printKinds(os.Stdout)
	}
	if !inSandbox() {
		return enterSandbox(ctx, append(args, fmt.Sprintf("--seed=%d", c.seed)))
	}
	if err := furnishSandbox(ctx); err != nil {
		return err
	}
	return run(ctx, c, os.Stdout)
}

func exitCode(err error) int {
	var said childExit
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &said):
		return int(said) // it has said why
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "chaos: interrupted")
		return 1
	default:
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 1
	}
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func parse(args []string, stderr io.Writer) (config, error) {
	c := config{seed: rand.Uint64N(1_000_000)}
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.bin, "bin", "bin", "`folder` with ommer, ommer-edge, ommer-worker and nats-server")
	f.DurationVar(&c.duration, "duration", 5*time.Minute, "no new fault begins after this `time`")
	f.Uint64Var(&c.seed, "seed", c.seed, "`number` that the faults are drawn from; drawn itself when not given")
	f.BoolVar(&c.overlap, "overlap", false, "let some faults begin while another one lasts")
	f.StringVar(&c.only, "only", "", "draw from the kinds of fault whose name has this `text` in it")
	f.StringVar(&c.json, "json", "", "write the report to this `file` as well")
	f.StringVar(&c.keep, "keep", "", "`folder` for the logs of all processes when the run has failed")
	f.BoolVar(&c.list, "list", false, "print the kinds of fault, and what each excuses")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, usageError{err}
	}
	if f.NArg() > 0 {
		return c, usageError{fmt.Errorf("unexpected argument %q", f.Arg(0))}
	}
	if c.duration <= 0 {
		return c, usageError{errors.New("--duration must be positive")}
	}
	if len(kindsNamed(c.only)) == 0 {
		return c, usageError{fmt.Errorf("--only %q: no kind of fault has this in its name", c.only)}
	}
	return c, nil
}

// errFailed: something was not as it has to be, and has been printed.
var errFailed = errors.New("the deployment did not withstand")

// run starts the deployment and the load, and has the faults happen.
func run(ctx context.Context, c config, stdout io.Writer) (err error) {
	bin, err := filepath.Abs(c.bin)
	if err != nil {
		return err
	}
	dir := filepath.Join(sandboxDir, "files")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	t, err := newTruth()
	if err != nil {
		return err
	}
	s, err := startSite(ctx, bin, dir, t)
	defer func() {
		err = errors.Join(err, s.stop())
		if err != nil && c.keep != "" {
			err = errors.Join(err, s.keepLogs(c.keep))
		}
	}()
	if err != nil {
		return err
	}
	book := newLedger(time.Now())
	load, err := startLoad(ctx, s, t, book)
	if err != nil {
		return err
	}
	defer load.end()
	fmt.Fprintf(stdout, "seed %d; %s; %d clients ask %d questions per second, of %d\n",
		c.seed, s, clients, clients*int(time.Second/interval), len(t.questions))
	d := &drill{config: c, site: s, load: load, book: book, out: stdout}
	r, err := d.run(ctx)
	if r != nil {
		err = errors.Join(err, r.print(stdout), r.write(c.json))
	}
	if err == nil && len(r.Complaints) > 0 {
		return errFailed
	}
	return err
}

// kindsNamed are the kinds of fault that have a text in their name.
func kindsNamed(text string) (named []kind) {
	for _, k := range kinds {
		if strings.Contains(k.name, text) {
			named = append(named, k)
		}
	}
	return named
}

// pause waits for d, and says whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil // both may have been so
}
