package main

import (
	"testing"

	"github.com/ommer/ommer/deploy/load"
)

// named is a fault of a kind at a machine.
func named(t *testing.T, kind string, number int) *fault {
	t.Helper()
	for _, k := range kinds {
		if k.name == kind {
			return &fault{kind: k, target: &machine{role: k.role, number: number, host: host{name: string(k.role)}}}
		}
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

func TestExcused(t *testing.T) {
	for name, c := range map[string]struct {
		fault, failure string
		edge           int
		want           string
		ok             bool
	}{
		"held by the edge that was killed": {"kill edge", load.KindReset, 1, load.KindReset + ", held by edge", true},
		"held by the other one":            {"kill edge", load.KindReset, 0, load.KindReset, false},
		"refused by an edge that is there": {"kill edge", "JSON-RPC error -32002", 1, "JSON-RPC error -32002", false},
		"an upstream cannot break":         {"kill upstream", load.KindClosed, 0, load.KindClosed, false},
		"without any upstream":             {"kill upstreams", "JSON-RPC error -32002", 0, "JSON-RPC error -32002", true},
		"but no key is forgotten":          {"kill upstreams", "HTTP status 401", 0, "HTTP status 401", false},
		"a server has the same number":     {"cut server-server", load.KindClosed, 1, load.KindClosed, false},
	} {
		got, ok := excused([]*fault{named(t, c.fault, 1)}, sample{edge: c.edge, failure: &load.Failure{Kind: c.failure}})
		if got != c.want || ok != c.ok {
			t.Errorf("%s: got %q %v, want %q %v", name, got, ok, c.want, c.ok)
		}
	}
}

// What no server may ever do has no excuse.
func TestNothingExcusesAWrongAnswer(t *testing.T) {
	for _, k := range kinds {
		f := &fault{kind: k, target: &machine{role: k.role}}
		for _, wrong := range []string{load.KindWrong, load.KindForm, load.KindID, load.KindTwice, load.KindProtocol} {
			if _, ok := excused([]*fault{f}, sample{failure: &load.Failure{Kind: wrong}}); ok {
				t.Errorf("%s excuses %q", k.name, wrong)
			}
		}
	}
}
