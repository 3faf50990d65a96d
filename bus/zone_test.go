package bus_test

import (
	"slices"
	"testing"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
)

// Those in the client's zone are asked while there are any.
func TestZone(t *testing.T) {
	t.Parallel()
	url := startNATS(t, embedded.Config{}).URL()
	near, far := newHerald(t, url, "near"), newHerald(t, url, "far")
	near.change(func(l *bus.Load) { l.Zone = "here" })
	far.change(func(l *bus.Load) { l.Zone = "there" })
	f := &fleet{Client: newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", url)}, Zone: "here"})}
	only := func(name string) {
		t.Helper()
		eventually(t, "only "+name+" is asked", func() bool {
			by := slices.Compact(f.where(t, 20))
			return len(by) == 1 && by[0] == name
		})
	}
	only("near")
	near.change(func(l *bus.Load) { l.State = bus.Leaving })
	only("far")
	near.change(func(l *bus.Load) { l.State = bus.Ready })
	only("near")
}

// When the only worker of a zone hangs, or answers nothing, those of others are asked.
func TestZoneOfOne(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*herald){
		"hangs":           (*herald).hang,
		"answers nothing": func(h *herald) { h.will(swallow) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 3, bus.ClientConfig{Zone: "here"})
			near := f.workers[0]
			near.change(func(l *bus.Load) { l.Zone = "here" })
			eventually(t, "the near one is asked", func() bool {
				before := near.asked.Load()
				f.where(t, 20)
				return near.asked.Load() == before+20
			})
			fail(near)
			for n := range uint64(300) {
				ask(t, f, schema.Question{Block: schema.Number(n)}, patience).want(schema.OK)
			}
			asked := near.asked.Load()
			f.where(t, 100)
			if got := near.asked.Load() - asked; got > 20 {
				t.Errorf("of 100 more questions %d went to the near one", got)
			}
		})
	}
}
