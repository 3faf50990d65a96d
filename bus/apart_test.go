package bus_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/ommer/ommer/bus"
)

func TestLinksApart(t *testing.T) {
	t.Parallel()
	n := natsCluster(t, 2)
	links, err := bus.DialApart(bus.LinkConfig{Name: "e", URLs: []string{n[0].ClientURL(), n[1].ClientURL()}}, 2)
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
	both := []string{"n0", "n1"}
	eventually(t, "one link on each", func() bool { return slices.Equal(servers(), both) })
	for _, l := range links { // one of them goes to the other's server
		if l.NATS().ConnectedServerName() == "n0" {
			if err := l.NATS().ForceReconnect(); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "one link on each again", func() bool { return links[0].Up() && links[1].Up() && slices.Equal(servers(), both) })
	n[0].Shutdown()
	eventually(t, "both on the one that is left", func() bool {
		return links[0].Up() && links[1].Up() && slices.Equal(servers(), []string{"n1"})
	})
}
