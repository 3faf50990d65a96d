package upstream

import (
	"strings"
	"testing"
	"time"

	"github.com/ommer/ommer/schema"
)

func TestOrder(t *testing.T) {
	now := time.Now()
	number, hash := schema.Number(100), schema.BlockHash(schema.Hash{1})
	slow := func(n *node) { n.pace.took(now, time.Second, true) }
	quick := func(n *node) { n.pace.took(now, time.Millisecond, true) }
	at := func(height uint64) func(*node) { return func(n *node) { n.latest.Store(height + 1) } }
	hung := func(n *node) {
		n.flights.Store(1)
		n.heard.Store(now.Add(-time.Minute).UnixNano())
	}
	for _, tt := range []struct {
		name  string
		urls  string
		state map[string]func(*node) // by host
		sel   schema.Selector
		want  string
	}{
		{"as listed", "a b c", nil, hash, "a b c"},
		{"as listed, though the first is slow", "a b", map[string]func(*node){"a": slow, "b": quick}, hash, "a b"},
		{"by priority", "a#priority=2 b#priority=1 c#priority=3", nil, hash, "b a c"},
		{"alike, the quick one first", "a#priority=1 b#priority=1", map[string]func(*node){"a": slow, "b": quick}, hash, "b a"},
		{"alike, the idle one first", "a#priority=1 b#priority=1", map[string]func(*node){
			"a": func(n *node) { quick(n); n.aboard.Store(3) }, "b": quick,
		}, hash, "b a"},
		{"alike, by weight", "a#priority=1 b#priority=1&weight=3", map[string]func(*node){
			"a": quick, "b": func(n *node) { quick(n); n.aboard.Store(1) },
		}, hash, "b a"},
		{"behind", "a b", map[string]func(*node){"a": at(99), "b": at(100)}, number, "b a"},
		{"behind, by hash", "a b", map[string]func(*node){"a": at(99), "b": at(100)}, hash, "a b"},
		{"not behind", "a b", map[string]func(*node){"a": at(100), "b": at(200)}, number, "a b"},
		{"pruned", "a b", map[string]func(*node){"a": func(n *node) { n.lacks.note(100, now) }}, number, "b a"},
		{"pruned below", "a b", map[string]func(*node){"a": func(n *node) { n.lacks.note(99, now) }}, number, "a b"},
		{"pruned long ago", "a b", map[string]func(*node){"a": func(n *node) { n.lacks.note(100, now.Add(-2*lacksFor)) }}, number, "a b"},
		{"hung", "a b c", map[string]func(*node){"a": hung, "b": at(5)}, number, "c b a"},
		{"left alone", "a b", map[string]func(*node){"a": func(n *node) { n.shut.close(now) }}, hash, "b a"},
		{"down", "a b c", map[string]func(*node){"a": func(n *node) { n.health.failed(now, ErrFailed) }, "b": hung}, hash, "c b a"},
	} {
		var urls []string
		for u := range strings.FieldsSeq(tt.urls) {
			urls = append(urls, "http://"+strings.Replace(u, "#", "/#", 1))
		}
		s := newSet(t, Config{URLs: urls})
		for _, n := range s.nodes {
			if change := tt.state[strings.TrimPrefix(n.name, "http://")]; change != nil {
				change(n)
			}
		}
		var got []string
		for _, n := range s.order(tt.sel, now) {
			got = append(got, strings.TrimPrefix(n.name, "http://"))
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
