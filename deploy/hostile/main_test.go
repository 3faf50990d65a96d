package main

import (
	"errors"
	"flag"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	c, err := parse([]string{"--short", "--only", "unread", "--bin", "b"}, io.Discard)
	if err != nil || !c.short || c.bin != "b" || len(c.rounds()) == 0 {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err = parse([]string{"--short", "--only", "one address"}, io.Discard); err != nil || len(c.rounds()) == 0 {
		t.Errorf("one way of an attack, in short: %d rounds, %v", len(c.rounds()), err)
	}
	for name, args := range map[string][]string{
		"unknown flag":   {"--fast"},
		"argument":       {"unread"},
		"unknown attack": {"--only", "kindness"},
	} {
		if _, err := parse(args, io.Discard); !errors.As(err, new(usageError)) {
			t.Errorf("%s: got %v, want a usage error", name, err)
		}
	}
	if _, err := parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

// Each row is whole, and found by its name in another process.
func TestAttacks(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range attacks() {
		if seen[a.name] {
			t.Errorf("two attacks are called %q", a.name)
		}
		seen[a.name] = true
		if find(a.name) == nil {
			t.Errorf("%q is not found", a.name)
		}
		if a.conduct == nil || a.enemies == 0 || len(a.ends) == 0 || a.why == "" || a.growth == 0 {
			t.Errorf("%q: the row is not whole", a.name)
		}
		if a.again && a.rate == 0 {
			t.Errorf("%q comes again and again without a cap", a.name)
		}
		if a.rawTLS && a.only != overTLS || a.keyed && !a.rawTLS {
			t.Errorf("%q speaks TLS by itself where there is none", a.name)
		}
	}
	if find("") != nil {
		t.Error("an attack without a name")
	}
	long, short := rounds(false), rounds(true)
	if len(short) != len(seen) || len(long) <= len(short) {
		t.Errorf("%d attacks, %d rounds in short and %d in all", len(seen), len(short), len(long))
	}
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	for i := 200; i > 0; i-- {
		all = append(all, time.Duration(i))
	}
	for p, want := range map[int]time.Duration{1: 2, 50: 100, 99: 198, 100: 200} {
		if got := percentile(all, p); got != want {
			t.Errorf("%d %%: got %d, want %d", p, got, want)
		}
	}
	if percentile(nil, 99) != 0 || percentile(all[:1], 99) != 200 {
		t.Error("of none or one")
	}
}
