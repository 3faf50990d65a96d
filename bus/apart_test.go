package bus_test

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/ommer/ommer/bus"
)

func TestLinksApart(t *testing.T) {
	a, b := cluster(t)
	closed := sync.OnceFunc(a.Close)
	t.Cleanup(closed)
	links, err := bus.DialApart(bus.LinkConfig{Name: "e", URLs: []string{a.URL(), b.URL()}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, l := range links {
			l.Close()
		}
	})
	servers := func() (ids []string) {
		seen := map[string]bool{}
		for _, l := range links {
			if l.Up() {
				seen[l.NATS().ConnectedServerName()] = true
			}
		}
		return slices.Sorted(maps.Keys(seen))
	}
	both := []string{"a", "b"}
	eventually(t, "one link on each", func() bool { return slices.Equal(servers(), both) })
	for _, l := range links { // one of them goes to the other's server
		if l.NATS().ConnectedServerName() == "a" {
			if err := l.NATS().ForceReconnect(); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "one link on each again", func() bool { return links[0].Up() && links[1].Up() && slices.Equal(servers(), both) })
	closed()
	eventually(t, "both on the one that is left", func() bool {
		return links[0].Up() && links[1].Up() && slices.Equal(servers(), []string{"b"})
	})
}
