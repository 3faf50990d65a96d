package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseConnections(t *testing.T) {
	c, err := parseConnections([]string{"--connections", "500", "--edges", "3", "--only", "wss,http", "--ping", "5s"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if c.conns != 500 || c.edges != 3 || !slices.Equal(c.only, []string{"wss", "http"}) || c.ping != 5*time.Second || c.files < 1 {
		t.Errorf("got %+v", c)
	}
	if c, err = parseConnections(nil, io.Discard); err != nil || c.conns != 150_000 || c.edges*c.files < c.conns {
		t.Errorf("without flags: %+v, %v", c, err)
	}
	for name, args := range map[string][]string{
		"unknown flag":   {"--fast"},
		"unknown kind":   {"--only", "ws,udp"},
		"none":           {"--connections", "0"},
		"too many":       {"--connections", "3000000"},
		"too few edges":  {"--connections", "2000000", "--edges", "1"},
		"negative edges": {"--edges", "-1"},
		"ping at once":   {"--ping", "1ms"},
		"no rest":        {"--rest", "1ms"},
		"argument":       {"wss"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseConnections(args, io.Discard); !errors.As(err, new(usage)) {
				t.Errorf("got %v, want a usage error", err)
			}
		})
	}
	if _, err := parseConnections([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

// Whatever is held, every process has its share, and every address few enough.
func TestShares(t *testing.T) {
	for _, n := range []int{1, 7000, 19_744, 19_745, 150_000, 1_999_999} {
		c := connectionsConfig{conns: n, files: 19_744}
		sum, seen := 0, map[string]bool{}
		for _, h := range (&stack{}).shares(c, kinds[0], 2) {
			sum += h.Conns
			if h.Conns > c.files || h.Conns > len(h.Sources)*connsPerSource {
				t.Errorf("of %d: %d connections from %d addresses", n, h.Conns, len(h.Sources))
			}
			for _, ip := range h.Sources {
				if s := ip.String(); seen[s] || !ip.IsLoopback() || ip[len(ip)-1] == 0 {
					t.Errorf("of %d: address %s", n, s)
				}
				seen[ip.String()] = true
			}
		}
		if sum != n {
			t.Errorf("%d of %d have a process", sum, n)
		}
	}
}

func TestPart(t *testing.T) {
	for _, n := range []int{0, 1, 7, 100} {
		sum := 0
		for i := range 3 {
			p := part(n, i, 3)
			if p < n/3 || p > n/3+1 {
				t.Errorf("part %d of %d: %d", i, n, p)
			}
			sum += p
		}
		if sum != n {
			t.Errorf("parts of %d come to %d", n, sum)
		}
	}
}

func TestConnectionsReport(t *testing.T) {
	m := crowdedKind{
		Kind: "wss-ping", Conns: 1000, Opening: 2 * time.Second, OpenCPU: time.Second, Spread: []int{490, 510},
		Before: 10 << 20, After: 10<<20 + 4_000_000, Settled: true, Answered: 1999, Failed: 1, Problem: "wrong answer",
		Kernel:  kernel{Available: -20_000_000, Slab: 8_000_000, PageTables: 300_000, KernelStack: 100_000},
		Objects: []perConn{{"TCP", 2, 2368}, {"filp", 2, 192}},
		Quiet:   time.Minute, QuietCPU: 6 * time.Second, Pings: 2000,
	}
	r := connectionsReport{Conns: 1000, Edges: 2, Kinds: []crowdedKind{m}}
	var b bytes.Buffer
	if err := errors.Join(m.print(&b), r.print(&b)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1000 us of the edges' CPU each; 1999 answers checked, 1 failed",
		"490 510 (490 to 510)",
		"2000 answered in 60 s, for 10.0 % of one core and 3000.0 us",
		"4000  the edges, resident",
		"8400  the kernel for both ends",
		"4200  half of the kernel's",
		"8200  the edges and their half",
		"20000  what is no longer available",
		"2.00  2368   4736  TCP",
		"5120  together",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
	if err := r.failed(); err == nil || !strings.Contains(err.Error(), "wss-ping: 1 of 2000 questions failed: wrong answer") {
		t.Errorf("got %v", err)
	}
	r.Kinds[0].Failed, r.Kinds[0].Problem = 0, ""
	if err := r.failed(); err != nil {
		t.Errorf("nothing failed: %v", err)
	}
}
