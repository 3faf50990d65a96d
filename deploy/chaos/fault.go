package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// kind is a kind of fault.
type kind struct {
	name    string
	role    role // of the machine that it happens to
	begin   func(context.Context, *fault) error
	heal    func(context.Context, *fault) error
	excuses []excuse
}

// fault is one that happens.
type fault struct {
	kind   kind
	number int // in the run
	site   *site
	target *machine
	rng    *rand.Rand
	hold   time.Duration // from its beginning until it is healed
	with   string        // who else is concerned, once it is known
}

// String says what happens to whom.
func (f *fault) String() string { return f.kind.name + ": " + f.target.name + f.with }

// happen begins the fault. Of a server it says who was connected to it: without them
// it is of little interest.
func (f *fault) happen(ctx context.Context) error {
	if f.target.role == server {
		f.with = " with " + names(f.site.clientsOf(ctx, f.target))
	}
	return f.kind.begin(ctx, f)
}

func names(ms []*machine) string {
	if len(ms) == 0 {
		return "nobody"
	}
	list := make([]string, len(ms))
	for i, m := range ms {
		list[i] = m.name
	}
	return strings.Join(list, ", ")
}

// slowness is how long a slow upstream takes, less than the workers wait for one.
const slowness = 2 * time.Second

// lossPercent is how many of all packets a bad link loses. TCP still gets through.
const lossPercent = 10

// kinds are all kinds of fault. A name is the verb and to what.
var kinds = []kind{
	{"kill edge", edge, kill, revive, []excuse{diedWithIt}},
	{"kill worker", worker, kill, revive, nil},
	{"kill server", server, kill, revive, nil},
	{"kill upstream", upstream, kill, revive, nil},
	{"kill upstreams", upstream, killAll, reviveAll, []excuse{noSource}},

	{"restart edge", edge, term, revive, []excuse{crossed}},
	{"restart worker", worker, term, revive, nil},
	{"restart server", server, term, revive, nil},
	{"lame duck server", server, lameDuck, revive, nil},

	{"pause edge", edge, freeze, thaw, []excuse{stalled}},
	{"pause worker", worker, freeze, thaw, nil},
	{"pause server", server, freeze, thaw, nil},
	{"pause upstream", upstream, freeze, thaw, nil},

	{"cut edge-server", edge, cut(linkInUse, bothWays), mend, nil},
	{"cut edge->server", edge, cut(linkInUse, toPeer), mend, nil},
	{"cut server->edge", edge, cut(linkInUse, fromPeer), mend, nil},
	{"cut edge-servers", edge, cut(allServers, bothWays), mend, []excuse{isolated}},
	{"cut worker-server", worker, cut(linkInUse, bothWays), mend, nil},
	{"cut worker->server", worker, cut(linkInUse, toPeer), mend, nil},
	{"cut server->worker", worker, cut(linkInUse, fromPeer), mend, nil},
	{"cut server-server", server, cut(otherServer, bothWays), mend, nil},
	{"cut server->server", server, cut(otherServer, toPeer), mend, nil},
	{"cut server-servers", server, cut(otherServers, bothWays), mend, nil},
	{"cut worker-upstream", worker, cut(oneUpstream, bothWays), mend, nil},
	{"cut upstream->worker", worker, cut(oneUpstream, fromPeer), mend, nil},

	{"loss edge-servers", edge, lose(allServers), mend, nil},
	{"loss worker-servers", worker, lose(allServers), mend, nil},
	{"loss server-servers", server, lose(otherServers), mend, nil},

	{"slow upstream", upstream, slow, quicken, nil},
	{"slow upstreams", upstream, slowAll, quickenAll, []excuse{noSource}},
}

func kill(ctx context.Context, f *fault) error {
	return errors.Join(f.target.end(syscall.SIGKILL), f.target.ended(ctx))
}

func term(_ context.Context, f *fault) error { return f.target.end(syscall.SIGTERM) }

// lameDuck has a server send its clients elsewhere and then end: what its operator does
// before maintenance.
func lameDuck(_ context.Context, f *fault) error { return f.target.end(syscall.SIGUSR2) }

// revive starts a program again once it has ended.
func revive(ctx context.Context, f *fault) error {
	if err := f.target.ended(ctx); err != nil {
		return err
	}
	return f.target.start()
}

func killAll(ctx context.Context, f *fault) error {
	var errs []error
	for _, m := range f.site.of(f.kind.role) {
		errs = append(errs, m.end(syscall.SIGKILL), m.ended(ctx))
	}
	return errors.Join(errs...)
}

func reviveAll(_ context.Context, f *fault) error {
	var errs []error
	for _, m := range f.site.of(f.kind.role) {
		errs = append(errs, m.start())
	}
	return errors.Join(errs...)
}

func freeze(_ context.Context, f *fault) error { return f.target.process.Signal(syscall.SIGSTOP) }

func thaw(_ context.Context, f *fault) error { return f.target.process.Signal(syscall.SIGCONT) }

// table is the name of the rules of a fault.
func (f *fault) table() string { return fmt.Sprintf("fault%d", f.number) }

// cut drops everything between the target and those that choose finds.
func cut(choose func(context.Context, *fault) []host, way int) func(context.Context, *fault) error {
	return func(ctx context.Context, f *fault) error { return f.part(ctx, choose, way, 100) }
}

// lose drops part of it.
func lose(choose func(context.Context, *fault) []host) func(context.Context, *fault) error {
	return func(ctx context.Context, f *fault) error { return f.part(ctx, choose, bothWays, lossPercent) }
}

func (f *fault) part(ctx context.Context, choose func(context.Context, *fault) []host, way, percent int) error {
	peers := choose(ctx, f)
	if len(peers) == 0 {
		return fmt.Errorf("%s: there is no such link", f)
	}
	for _, p := range peers {
		f.with += " | " + p.name
	}
	return f.target.hold(ctx, f.table(), way, percent, peers...)
}

func mend(ctx context.Context, f *fault) error { return f.target.release(ctx, f.table()) }

// linkInUse is a server that the target is connected to, or soon will be: another fault
// may just have ended its link.
func linkInUse(ctx context.Context, f *fault) []host {
	for end := time.Now().Add(wellWithin); ; {
		if linked := f.site.linkedTo(ctx, f.target); len(linked) > 0 {
			return []host{linked[f.rng.IntN(len(linked))].host}
		}
		if time.Now().After(end) || !pause(ctx, wellPoll) {
			return nil
		}
	}
}

func allServers(_ context.Context, f *fault) []host { return f.site.hosts(server) }

// otherServers are all but the target.
func otherServers(_ context.Context, f *fault) (hs []host) {
	for _, m := range f.site.of(server) {
		if m != f.target {
			hs = append(hs, m.host)
		}
	}
	return hs
}

func otherServer(ctx context.Context, f *fault) []host {
	others := otherServers(ctx, f)
	return []host{others[f.rng.IntN(len(others))]}
}

// oneUpstream is the one that workers prefer.
func oneUpstream(_ context.Context, f *fault) []host { return f.site.hosts(upstream)[:1] }

func slow(ctx context.Context, f *fault) error { return f.delay(ctx, slowness, f.target) }

func quicken(ctx context.Context, f *fault) error { return f.delay(ctx, distance, f.target) }

func slowAll(ctx context.Context, f *fault) error {
	return f.delay(ctx, slowness, f.site.of(f.kind.role)...)
}

func quickenAll(ctx context.Context, f *fault) error {
	return f.delay(ctx, distance, f.site.of(f.kind.role)...)
}

func (f *fault) delay(ctx context.Context, d time.Duration, ms ...*machine) error {
	var errs []error
	for _, m := range ms {
		errs = append(errs, tellDelay(ctx, m.at(upstreamPort), d))
	}
	return errors.Join(errs...)
}

// printKinds writes all kinds of fault, and what each excuses.
func printKinds(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, k := range kinds {
		if len(k.excuses) == 0 {
			fmt.Fprintf(w, "%s\texcuses nothing\n", k.name)
		}
		for _, e := range k.excuses {
			where := "anywhere"
			if e.held {
				where = "held by it"
			}
			fmt.Fprintf(w, "%s\texcuses %s: %q: %s\n", k.name, where, e.failures, e.why)
		}
	}
	return w.Flush()
}
