package main

import (
	"errors"
	"flag"
	"io"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain is one of the processes that a run starts when it is started as that.
func TestMain(m *testing.M) {
	playRole()
	goleak.VerifyTestMain(m)
}

func TestParse(t *testing.T) {
	c, err := parse([]string{"--conns", "1,20", "--only", "ws,idle", "--duration", "2s", "--idle", "10"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.conns, []int{1, 20}) || !slices.Equal(c.only, []string{"ws", "idle"}) || c.duration != 2*time.Second || c.idle != 10 {
		t.Errorf("got %+v", c)
	}
	if c, err = parse(nil, io.Discard); err != nil || !slices.Equal(c.only, parts()) || !slices.Equal(c.conns, []int{64, 2000}) {
		t.Errorf("without flags: %+v, %v", c, err)
	}
	for name, args := range map[string][]string{
		"unknown flag":       {"--fast"},
		"no number":          {"--conns", "64,many"},
		"no connections":     {"--conns", "0"},
		"unknown part":       {"--only", "http,udp"},
		"shorter than ticks": {"--duration", "1ms"},
		"no rounds":          {"--rounds", "0"},
		"no idle":            {"--idle", "0"},
		"argument":           {"https"},
		"over the limit":     {"--idle", "1000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(args, io.Discard); !errors.As(err, new(usage)) {
				t.Errorf("got %v, want a usage error", err)
			}
		})
	}
	if _, err := parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

func TestTurned(t *testing.T) {
	paths := []string{"a", "b", "c"}
	for round, want := range [][]string{{"a", "b", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"a", "b", "c"}} {
		if got := turned(paths, round); !slices.Equal(got, want) {
			t.Errorf("round %d: %v, want %v", round, got, want)
		}
	}
	if got := turned(nil, 1); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
