package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// The times of a drill.
const (
	// quiet is for how long nothing happens between faults, and nothing may fail.
	quiet = 2 * time.Second
	// wellFor is for how long everything must be well until it counts as well again,
	// and how late no question may be.
	wellFor = time.Second
	// wellWithin bounds the wait for that. It is generous: what counts is how long it
	// took, which is printed.
	wellWithin = 60 * time.Second
	// wellPoll is the pause between two looks.
	wellPoll = 100 * time.Millisecond
	// wellRight is how many right answers each edge must have given.
	wellRight = 20
)

// drill has faults happen to a site under load.
type drill struct {
	config
	site *site
	load *crowd
	book *ledger
	out  io.Writer
}

// run draws faults until the time is over. The report says what came of those that
// there were, also after an error.
func (d *drill) run(ctx context.Context) (*report, error) {
	r := &report{Seed: d.seed, Began: time.Now()}
	defer func() { r.Took = time.Since(r.Began) }()
	if _, err := d.wellAgain(ctx, r.Began); err != nil {
		r.Calm.add(d.calm(span{r.Began, time.Now()}))
		r.judge()
		return r, fmt.Errorf("before the first fault: %w", err)
	}
	d.book.take(func(sample) bool { return true }) // the start is not looked at
	from := time.Now()
	if err := d.rest(ctx); err != nil {
		return r, err
	}
	deck := newDeck(d.seed, kindsNamed(d.only))
	for time.Since(r.Began) < d.duration {
		faults := []*fault{deck.draw(d.site)}
		if d.overlap && deck.both() {
			if second := deck.draw(d.site, faults...); second != nil {
				faults = append(faults, second)
			}
		}
		e, err := d.happen(ctx, faults)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Calm.add(d.calm(span{from, e.span.from}))
		e.tally = d.tally(ctx, e.span, faults)
		from = e.span.to
		e.judge(err)
		r.Events = append(r.Events, e)
		e.print(d.out, r.Began)
		if err != nil {
			break // what comes after says nothing any more
		}
	}
	r.Calm.add(d.calm(span{from, time.Now()}))
	r.judge()
	return r, nil
}

// happen begins the faults, each within the time of the one before, heals them, waits
// until everything is well again, and then some quiet time longer. The error says what
// did not happen as it should.
func (d *drill) happen(ctx context.Context, faults []*fault) (e *event, err error) {
	e = &event{span: span{from: time.Now()}, kind: faults[0].kind.name}
	defer func() {
		for i, f := range faults {
			if e.What += f.String(); i+1 < len(faults) {
				e.What += " + "
			}
		}
	}()
	for i, f := range faults {
		if i > 0 {
			e.kind += " + " + f.kind.name
		}
		err = errors.Join(err, f.happen(ctx))
		pause(ctx, f.hold/time.Duration(len(faults)))
	}
	for _, f := range faults {
		err = errors.Join(err, f.kind.heal(ctx, f))
	}
	e.healed = time.Now()
	if err == nil {
		e.Well, err = d.wellAgain(ctx, e.healed)
	}
	e.span.to = time.Now()
	if err == nil {
		err = d.rest(ctx)
	}
	return e, err
}

// rest lets quiet time pass.
func (d *drill) rest(ctx context.Context) error {
	if !pause(ctx, quiet) {
		return ctx.Err()
	}
	return d.site.crashed()
}

// wellAgain waits until everything is well and has been for wellFor, and returns how
// long after a time that began.
func (d *drill) wellAgain(ctx context.Context, after time.Time) (time.Duration, error) {
	good := time.Now() // since when nothing was seen to be wrong
	for pause(ctx, wellPoll) {
		if err := d.site.crashed(); err != nil {
			return time.Since(after), err
		}
		err := errors.Join(d.site.well(ctx), d.late())
		now := time.Now()
		if err != nil {
			good = now
		}
		failed, right := d.book.goodSince(after)
		if failed.After(good) {
			good = failed
		}
		switch {
		case now.Sub(good) >= wellFor && slices.Min(right[:]) >= wellRight:
			return max(good.Sub(after), 0), nil
		case now.Sub(after) > wellWithin:
			return now.Sub(after), errors.Join(fmt.Errorf("%w: since the last failure the edges gave %d right answers", errNotWell, right), err)
		}
	}
	return 0, ctx.Err()
}

var errNotWell = fmt.Errorf("not well within %v", wellWithin)

// late says whether a question has to wait for too long.
func (d *drill) late() error {
	if due, any := d.book.oldest(); any && time.Since(due) > wellFor {
		return fmt.Errorf("a question waits for %v", time.Since(due).Round(time.Millisecond))
	}
	return nil
}

// tally counts what came of the questions of a span once all of them have ended.
func (d *drill) tally(ctx context.Context, s span, faults []*fault) tally {
	for end := time.Now().Add(2 * answerTime); time.Now().Before(end); {
		if due, any := d.book.oldest(); !any || !due.Before(s.to) || !pause(ctx, wellPoll) {
			break
		}
	}
	return count(d.book.take(s.belongs), s, func(x sample) (string, bool) { return excused(faults, x) })
}

// calm counts what came of the questions of a quiet span, of which nothing may fail.
func (d *drill) calm(s span) tally {
	between := d.book.take(func(x sample) bool { return !x.due.Before(s.from) && x.done.Before(s.to) })
	return count(between, s, func(x sample) (string, bool) { return x.failure.Kind, false })
}
