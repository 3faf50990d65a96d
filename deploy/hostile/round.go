package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ommer/ommer/deploy/child"
)

// sources are the addresses that enemies come from. Honest clients come from 127.0.0.1,
// so that limits of an address are not theirs as well.
var sources = func() (all []string) {
	for i := 2; i <= 17; i++ {
		all = append(all, fmt.Sprintf("127.0.0.%d", i))
	}
	return all
}()

// round is one attack in one way, and what came of it.
type round struct {
	attack *attack
	secure bool
	alone  bool // from a single address

	Before, During, After tally // honest clients
	Met                   result
	Start, Most, End      usage // of the edge: before, at most, and when everything was released
	Says                  []string
	EdgeCPU               time.Duration
	Took                  time.Duration
	Complaints            []string
}

// name is the attack and the way.
func (r *round) name() string {
	name := r.attack.name
	if r.secure {
		name += ", TLS"
	}
	if r.alone {
		name += ", one address"
	}
	return name
}

// rounds are all rounds. The short list has each attack once.
func rounds(short bool) (all []*round) {
	list := attacks()
	for i := range list {
		a := &list[i]
		if a.only != overTLS {
			all = append(all, &round{attack: a})
		}
		if a.only == overTLS || a.only == overBoth && !short {
			all = append(all, &round{attack: a, secure: true})
		}
		if a.alone && !short {
			all = append(all, &round{attack: a, secure: a.only == overTLS, alone: true})
		}
	}
	return all
}

// arena is where rounds take place.
type arena struct {
	stack *stack
	crowd *crowd
	watch *watch
	rest  usage         // of the edge before anybody came
	unit  time.Duration // the edge's time-outs
	act   time.Duration // how long attackers act
	quiet time.Duration // how long the honest are measured between attacks
	last  tally         // of the quiet before
}

// edgeFlags make the edge's time-outs a unit, so that attacks end in seconds. What holds
// for the honest as well, between their questions, is twice as long. Delay sheds nothing:
// it would be the machine's.
func edgeFlags(unit time.Duration) []string {
	flags := []string{"--overload-delay", "1m"}
	for _, name := range []string{"handshake", "header", "body", "write"} {
		flags = append(flags, "--timeout-"+name, unit.String())
	}
	for _, name := range []string{"idle", "ping"} {
		flags = append(flags, "--timeout-"+name, (2 * unit).String())
	}
	return flags
}

// releaseTime is how long the edge may take to let go of everything when attackers
// have left. It takes milliseconds, or a time-out.
const releaseTime = 20 * time.Second

// What may be open beyond the regulars' connections when everything is released:
// newcomers come and go, and scrapes do.
const (
	spareConns      = 8
	spareFiles      = 12
	spareGoroutines = 24
)

// run attacks, and looks at what that does.
func (a *arena) run(ctx context.Context, r *round) error {
	lasts := r.attack.lasts
	if lasts == 0 {
		lasts = 1
	}
	j := job{
		Attack: r.attack.name, Secure: r.secure, Site: a.stack.site, Sources: sources,
		Enemies: r.attack.enemies, Lasts: time.Duration(lasts * float64(a.act)), Unit: a.unit,
	}
	if r.alone {
		j.Sources = sources[:1]
	}
	if _, err := a.watch.take(); err != nil {
		return err
	}
	said, err := child.ReadMetrics(ctx, a.stack.admin)
	if err != nil {
		return err
	}
	if r.Start.RSS, err = child.RSS(a.stack.edge.PID()); err != nil {
		return err
	}
	before, err := child.CPU(a.stack.edge.PID())
	if err != nil {
		return err
	}
	r.Before = a.last
	during, began := a.crowd.open(), time.Now()
	dismissed := make(chan struct{})
	if r.attack.deaf && slices.Contains(r.attack.ends, endCut) {
		go a.dismiss(ctx, j.Enemies, dismissed)
	}
	if r.Met, err = startRaid(ctx, j, max(r.attack.processes, 1), dismissed); err != nil {
		return err
	}
	select {
	case <-dismissed: // nothing of theirs was left at the edge before
		r.Met.Ends = map[string]int{endCut: int(r.Met.Lives)}
	default:
	}
	r.Took = time.Since(began)
	// The time until everything is released belongs to nobody's window.
	released := a.crowd.open()
	if err = a.released(ctx, during); err != nil {
		r.Complaints = append(r.Complaints, err.Error())
	}
	after, err := child.CPU(a.stack.edge.PID())
	if err != nil {
		return err
	}
	r.EdgeCPU = after - before
	if r.Most, err = a.watch.take(); err != nil {
		return err
	}
	if r.End, err = a.stack.usage(ctx); err != nil {
		return err
	}
	r.Says = a.says(ctx, said)
	quiet := a.crowd.open()
	if err := a.rested(ctx, quiet); err != nil {
		return err
	}
	r.During, r.After = a.crowd.read(during), a.crowd.read(quiet)
	a.last = r.After
	r.During = r.During.plus(a.crowd.read(released))
	r.Complaints = append(r.Complaints, r.judge(a.rest)...)
	return nil
}

// dismiss sends enemies that read nothing home when the edge has had connections of all
// of them and has ended them, which they cannot see. Until then they hold on.
func (a *arena) dismiss(ctx context.Context, enemies int, dismissed chan<- struct{}) {
	most := 0
	for end := time.Now().Add(2 * patience); pause(ctx, 50*time.Millisecond) && time.Now().Before(end); {
		u, err := a.stack.usage(ctx)
		if most = max(most, u.Conns); err == nil && most >= regulars+enemies && u.Conns <= regulars+spareConns {
			close(dismissed)
			return
		}
	}
}

// rested waits for as long as the honest are measured between attacks, and until one
// of them is answered, for whom a busy machine may have no time in that.
func (a *arena) rested(ctx context.Context, w *window) error {
	wait := a.quiet
	for end := time.Now().Add(releaseTime); pause(ctx, wait); wait = 10 * time.Millisecond {
		if t := a.crowd.read(w); t.Right > 0 || time.Now().After(end) {
			return nil
		}
	}
	return ctx.Err()
}

// What the edge says of connections that it has ended.
var endings = []string{"ommer_edge_sessions_ended_total", "ommer_nio_refused_total", "ommer_nio_handshake_failures_total"}

// says is by how much each of them has grown. It is for people: the honest are counted
// too, and so are clients that hung up.
func (a *arena) says(ctx context.Context, before child.Metrics) (all []string) {
	after, err := child.ReadMetrics(ctx, a.stack.admin)
	if err != nil {
		return []string{err.Error()}
	}
	for _, series := range slices.Sorted(maps.Keys(after)) {
		for _, name := range endings {
			label, ok := strings.CutPrefix(series, name+`{reason="`)
			if n := after[series] - before[series]; ok && n > 0 {
				all = append(all, fmt.Sprintf("%v %s", n, strings.TrimSuffix(label, `"}`)))
			}
		}
	}
	return all
}

// released waits until the edge has let go of what attackers made it hold, and until
// every honest question is answered.
func (a *arena) released(ctx context.Context, during *window) error {
	for end := time.Now().Add(releaseTime); ; {
		u, err := a.stack.usage(ctx)
		if err == nil {
			err = a.stillHeld(u)
		}
		if n := a.crowd.pending(during); err == nil && n > 0 {
			err = fmt.Errorf("%d honest questions are not answered", n)
		}
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %v: %w", releaseTime, err)
		}
		if !pause(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
}

func (a *arena) stillHeld(u usage) error {
	var errs []error
	for _, one := range []struct {
		what      string
		got, most int
	}{
		{"connections", u.Conns, regulars + spareConns},
		{"files", u.Files, a.rest.Files + regulars + spareFiles},
		{"goroutines", u.Goroutines, a.rest.Goroutines + spareGoroutines},
	} {
		if one.got > one.most {
			errs = append(errs, fmt.Errorf("the edge has %d %s, want at most %d", one.got, one.what, one.most))
		}
	}
	return errors.Join(errs...)
}
