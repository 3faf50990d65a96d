package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Part is a piece of a process with a life of its own.
type Part struct {
	Name string
	// Run blocks until ctx ends, then leaves in order and returns nil. An error,
	// or a return before ctx ended, stops the whole process.
	Run func(ctx context.Context) error
}

// Process runs parts.
type Process struct {
	Log       *slog.Logger
	Admin     *Admin        // may be nil
	StopAfter time.Duration // bounds the whole stop; 0 means 20 s

	// Reload is called on SIGHUP and must return soon. Nil: SIGHUP ends the process,
	// as it does where nobody asks for it.
	Reload func()
}

// ErrStopTimeout is returned when a stop had to be cut off.
var ErrStopTimeout = errors.New("graceful stop took too long and was cut off")

// oneStop is how long signals count as one: a terminal, make and a supervisor may
// all pass on the same request to stop.
const oneStop = time.Second

// Run starts the parts in order and blocks until SIGINT, SIGTERM, the end of ctx
// or the failure of a part; then it stops them in reverse order, each before the
// next. A second signal ends the process at once. SIGHUP calls Reload.
func (p *Process) Run(ctx context.Context, parts ...Part) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	hangups := make(chan os.Signal, 1)
	if p.Reload != nil {
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	defer keepHeap()()

	if p.Admin != nil {
		parts = append([]Part{{Name: "admin", Run: p.Admin.Run}}, parts...)
	}
	live := make([]running, 0, len(parts))
	for _, part := range parts {
		live = append(live, start(part, cancel))
	}
	for running := true; running; {
		select {
		case <-hangups:
			p.Log.Info("reloading", "signal", syscall.SIGHUP.String())
			p.Reload()
		case s := <-signals:
			p.Log.Info("stopping", "signal", s.String())
			running = false
		case <-ctx.Done():
			running = false
		}
	}
	if p.Admin != nil {
		p.Admin.Stopping()
	}
	stopAfter := p.StopAfter
	if stopAfter <= 0 {
		stopAfter = 20 * time.Second
	}
	stopped := time.Now()
	late := time.NewTimer(stopAfter)
	defer late.Stop()
	for i := len(live) - 1; i >= 0; i-- {
		live[i].stop()
		for waiting := true; waiting; {
			select {
			case <-live[i].done:
				waiting = false
			case s := <-signals:
				if time.Since(stopped) > oneStop {
					return fmt.Errorf("second signal (%s): not waiting for %s", s, live[i].name)
				}
			case <-late.C:
				return fmt.Errorf("%w: %s", ErrStopTimeout, live[i].name)
			}
		}
	}
	var errs []error
	for _, r := range live {
		errs = append(errs, *r.err)
	}
	p.Log.Info("stopped")
	return errors.Join(errs...)
}

type running struct {
	name string
	stop context.CancelFunc
	done <-chan struct{}
	err  *error // to be read after done
}

// start runs a part under a context of its own, which only stop ends: parts must
// outlive those that were started after them.
func start(part Part, failed context.CancelCauseFunc) running {
	ctx, stop := context.WithCancel(context.Background())
	done, result := make(chan struct{}), new(error)
	go func() {
		defer close(done)
		err := part.Run(ctx)
		*result = err
		switch {
		case err != nil:
			*result = fmt.Errorf("%s: %w", part.Name, err)
			failed(*result)
		case ctx.Err() == nil:
			*result = fmt.Errorf("%s ended by itself", part.Name)
			failed(*result)
		}
	}()
	return running{part.Name, stop, done, result}
}
