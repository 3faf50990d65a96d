package nio

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// crowding is a crowd whose newcomers have names; the first letter is their address.
type crowding struct {
	crowd
	names  map[*newcomer]string
	byName map[string]*newcomer
}

func newCrowding() *crowding {
	c := &crowding{names: map[*newcomer]string{}, byName: map[string]*newcomer{}}
	c.init()
	return c
}

func (c *crowding) come(names ...string) {
	for _, name := range names {
		n := c.byName[name]
		if n == nil {
			n = &newcomer{addr: netip.AddrFrom4([4]byte{name[0]})}
			c.names[n], c.byName[name] = name, n
		}
		c.add(n)
	}
}

func (c *crowding) speak(names ...string) {
	for _, name := range names {
		c.wake(c.byName[name])
	}
}

func (c *crowding) all(take func() *newcomer) (names []string) {
	for n := take(); n != nil; n = take() {
		names = append(names, c.names[n])
	}
	return names
}

func (c *crowding) throwOut() *newcomer {
	n := c.worst()
	if n != nil {
		c.remove(n)
	}
	return n
}

func TestCrowdTurns(t *testing.T) {
	c := newCrowding()
	c.come("a1", "a2", "a3", "a4", "b1", "c1", "c2")
	c.speak("a2", "a1", "a4", "c2", "b1")
	if got, want := c.all(c.next), []string{"a2", "c2", "b1", "a1", "a4"}; !slices.Equal(got, want) {
		t.Errorf("the turns are of %v, want %v", got, want)
	}
	c.speak("c1", "a3")
	c.come("a1")
	if got, want := c.all(c.next), []string{"c1", "a3"}; !slices.Equal(got, want) {
		t.Errorf("the turns are then of %v, want %v", got, want)
	}
}

func TestCrowdWorst(t *testing.T) {
	for name, tt := range map[string]struct {
		crowd func(*crowding)
		want  []string
	}{
		"nobody": {func(*crowding) {}, nil},
		"one each, the oldest silent first": {func(c *crowding) {
			c.come("a1", "b1", "c1", "d1")
			c.speak("b1")
		}, []string{"a1", "c1", "d1", "b1"}},
		"the newest if those before have spoken": {func(c *crowding) {
			c.come("a1", "b1")
			c.speak("a1")
			c.come("c1")
			c.speak("b1")
			c.next()
		}, []string{"c1", "b1"}},
		"the address with the most": {func(c *crowding) {
			c.come("a1", "b1", "b2", "b3", "c1", "c2")
		}, []string{"b1", "b2", "c1", "a1", "b3", "c2"}},
		"silent, then stalled, then ready": {func(c *crowding) {
			c.come("a1", "a2", "a3", "a4", "a5", "a6")
			for _, name := range []string{"a1", "a2"} {
				c.speak(name)
				c.next().answered = true
				c.come(name)
			}
			c.speak("a3", "a4")
		}, []string{"a5", "a6", "a1", "a2", "a4", "a3"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowding()
			tt.crowd(c)
			got := c.all(c.throwOut)
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v go, want %v", got, tt.want)
			}
			if len(c.lines)+len(c.longest)+c.round.Len()+c.size != 0 {
				t.Errorf("what is left: %+v", c.crowd)
			}
		})
	}
}

// TestCrowdInvariants does at random what can be done, and holds the crowd against
// its definition.
func TestCrowdInvariants(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var c crowd
	c.init()
	var in, out []*newcomer
	for i := range 60 {
		out = append(out, &newcomer{addr: netip.AddrFrom4([4]byte{byte(i * i % 11)})})
	}
	pick := func(from *[]*newcomer) *newcomer {
		i := random.IntN(len(*from))
		n := (*from)[i]
		*from = slices.Delete(*from, i, i+1)
		return n
	}
	gone := func(n *newcomer) {
		in = slices.Delete(in, slices.Index(in, n), slices.Index(in, n)+1)
		out = append(out, n)
	}
	for range 20000 {
		switch what := random.IntN(6); {
		case what < 2 && len(out) > 0:
			n := pick(&out)
			n.answered = random.IntN(3) == 0
			c.add(n)
			in = append(in, n)
		case what == 2 && len(in) > 0:
			if n := in[random.IntN(len(in))]; n.list != &n.line.ready {
				c.wake(n)
			}
		case what == 3:
			if n := c.next(); n != nil {
				gone(n)
			}
		case what == 4 && len(in) > 0:
			n := c.worst()
			most := map[netip.Addr]int{}
			for _, n := range in {
				most[n.addr]++
			}
			for a, k := range most {
				if k > most[n.addr] {
					t.Fatalf("one of %v goes, which has %d; %v has %d", n.addr, most[n.addr], a, k)
				}
			}
			for _, o := range in {
				silent := o.list == &o.line.silent
				if silent && most[o.addr] == most[n.addr] && (n.list != &n.line.silent || o.arrival < n.arrival) {
					t.Fatal("an older silent one stays")
				}
			}
			c.remove(n)
			gone(n)
		case what == 5 && len(in) > 0:
			n := pick(&in)
			c.remove(n)
			out = append(out, n)
		}
		ready, addrs := map[netip.Addr]bool{}, map[netip.Addr]bool{}
		for _, n := range in {
			addrs[n.addr] = true
			if n.list == &n.line.ready {
				ready[n.addr] = true
			}
		}
		if c.size != len(in) || len(c.lines) != len(addrs) || len(c.longest) != len(addrs) || c.round.Len() != len(ready) {
			t.Fatalf("%d in %d lines, %d in the heap, %d with turns; want %d, %d, %d",
				c.size, len(c.lines), len(c.longest), c.round.Len(), len(in), len(addrs), len(ready))
		}
	}
}
