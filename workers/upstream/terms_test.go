package upstream

import (
	"strings"
	"testing"
)

func TestTerms(t *testing.T) {
	preset := terms{priority: 3, weight: 1, inFlight: 16, batch: 32}
	for _, tt := range []struct {
		fragment string
		want     terms
		err      string // part of it
	}{
		{"", preset, ""},
		{"#", preset, ""},
		{"#priority=1&weight=2.5&rps=0.5&in-flight=8&batch=10", terms{1, 2.5, 0.5, 8, 10}, ""},
		{"#rps=100", terms{3, 1, 100, 16, 32}, ""},
		{"#priority=0", terms{}, "priority must be a number from 1 to 1000"},
		{"#priority=1.5", terms{}, "whole"},
		{"#weight=-1", terms{}, "weight"},
		{"#weight=NaN", terms{}, "weight"},
		{"#rps=", terms{}, "rps"},
		{"#batch=301", terms{}, "batch"},
		{"#in_flight=1", terms{}, "in-flight"},
		{"#priority=%zz", terms{}, "query"},
	} {
		const url = "https://node.example/secret-path"
		bare, got, err := splitTerms(url+tt.fragment, preset)
		if bare != url {
			t.Errorf("%q: URL %q", tt.fragment, bare)
		}
		switch {
		case tt.err == "" && (err != nil || got != tt.want):
			t.Errorf("%q: %+v, %v; want %+v", tt.fragment, got, err, tt.want)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%q: %v, want %q", tt.fragment, err, tt.err)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: the error shows the URL: %v", tt.fragment, err)
		}
	}
}
