package main

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	const mb = 1 << 20
	rest := usage{RSS: 20 * mb}
	// good is a round in which everything was as documented.
	good := func() *round {
		return &round{
			attack: &attack{answers: []string{"200", "429"}, ends: []string{"408", endClosed}, why: "so it says", growth: 10},
			During: tally{Right: 100}, After: tally{Right: 50},
			Met:  result{Answers: map[string]int{"200": 3}, Ends: map[string]int{"408": 2, endClosed: 1}},
			Most: usage{RSS: rest.RSS + garbageRoom + 10*mb},
		}
	}
	for name, c := range map[string]struct {
		change func(*round)
		want   string // of the only complaint, nothing for none
	}{
		"good":               {func(*round) {}, ""},
		"wrong":              {func(r *round) { r.During.Wrong = 1; r.During.Examples = []string{"null"} }, "during the attack 1 honest answers were wrong and 0 failed: null"},
		"failed after":       {func(r *round) { r.After.Failed = 2 }, "after it 0 honest answers were wrong and 2 failed"},
		"nobody asked":       {func(r *round) { r.During.Right = 0 }, "no honest question was answered"},
		"another end":        {func(r *round) { r.Met.Ends[endOpen] = 7 }, `7 ends are "open", documented is ["408" "closed"]: so it says`},
		"no end":             {func(r *round) { r.Met.Ends = nil }, "there were no ends"},
		"another answer":     {func(r *round) { r.Met.Answers["500"] = 1 }, `1 answers are "500"`},
		"no answer":          {func(r *round) { r.Met.Answers = nil }, "there were no answers"},
		"no answer wanted":   {func(r *round) { r.attack.answers, r.Met.Answers = nil, nil }, ""},
		"answer of a silent": {func(r *round) { r.attack.answers = nil }, `3 answers are "200"`},
		"memory":             {func(r *round) { r.Most.RSS += mb }, "the edge took up 127 MiB, the bound is 126"},
		"memory from before": {func(r *round) { r.Start.RSS = 500 * mb; r.Most.RSS = 510 * mb }, ""},
		"and more":           {func(r *round) { r.Start.RSS = 500 * mb; r.Most.RSS = 511 * mb }, "the bound is 510"},
		"gone before":        {func(r *round) { r.attack.ends, r.Met = []string{endLeft}, result{Ends: map[string]int{endLeft: 1}} }, ""},
		"one address":        {func(r *round) { r.alone, r.attack.aloneEnds = true, []string{"408"} }, `1 ends are "closed", documented is ["408"]`},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			c.change(r)
			got := r.judge(rest)
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("complains: %q", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
