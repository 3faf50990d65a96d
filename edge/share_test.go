package edge

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/schema"
)

func TestRoom(t *testing.T) {
	for _, tt := range []struct {
		name                       string
		asked, ofKey, ofAddr, mine int64
		byAddr                     bool
		want                       int
	}{
		{"alone", 0, 0, 0, 0, true, 142},
		{"alone, has some", 100, 100, 100, 100, true, 42},
		{"alone, has its share", 200, 200, 200, 150, true, -28},
		{"its key has much", 400, 200, 0, 0, true, 28},
		{"its address has much", 400, 0, 200, 0, true, 28},
		{"its address is a balancer's", 400, 0, 200, 0, false, 85},
		{"its key has all", 400, 300, 0, 5, true, -2},
		{"its key has all, it nothing", 400, 300, 0, 0, true, 1},
		{"nothing is free", 1000, 0, 0, 0, true, 1},
		{"less than nothing is free", 1200, 0, 0, 3, true, -30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p shares
			p.init(1000, tt.byAddr)
			k := new(keys.Entry)
			slot := p.slot(netip.MustParseAddr("192.0.2.1"))
			p.asked.Store(tt.asked)
			k.Lookups.Store(tt.ofKey)
			p.addrs[slot].Store(tt.ofAddr)
			if got := p.room(k, slot, int32(tt.mine)); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestSharesSettle: however many take all they may, each in turn, some is free.
func TestSharesSettle(t *testing.T) {
	for _, n := range []int{1, 2, 10, 50, 500} {
		var p shares
		p.init(4096, true)
		entries, mine := make([]keys.Entry, n), make([]int32, n)
		for range 50 {
			for i := range n {
				k := &entries[i]
				if got := int32(p.room(k, uint16(i), mine[i])); got > 0 {
					mine[i] += got
					p.add(k, uint16(i), got)
				}
				if done := rand.Int32N(mine[i] + 1); done > 0 { // and some is answered
					mine[i] -= done
					p.add(k, uint16(i), -done)
				}
			}
		}
		for i := range n {
			if got := int32(p.room(&entries[i], uint16(i), mine[i])); got > 0 {
				mine[i] += got
				p.add(&entries[i], uint16(i), got)
			}
		}
		late := new(keys.Entry)
		if room := p.room(late, addrSlots-1, 1); p.asked.Load() > 4096+int64(n) || n <= 50 && room < 1 {
			t.Errorf("%d keys have %d of 4096, and leave %d to another", n, p.asked.Load(), room)
		}
	}
}

func TestSlot(t *testing.T) {
	var p shares
	p.init(1, true)
	slot := func(s string) uint16 { return p.slot(netip.MustParseAddr(s)) }
	if slot("2001:db8::1%eth0") != slot("2001:db8::ffff:1") {
		t.Error("addresses of one /64 are counted apart")
	}
	used := map[uint16]bool{}
	for i := range 256 {
		used[p.slot(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))] = true
	}
	if len(used) < 200 {
		t.Errorf("256 addresses are counted in %d slots", len(used))
	}
}

// holder keeps whom to answer.
type holder []schema.Receiver

func (h *holder) Resolve(_ schema.Question, _ time.Time, to schema.Receiver) { *h = append(*h, to) }

func (h *holder) answer(n int) {
	for _, to := range (*h)[:n] {
		to.Answered(schema.Answer{Result: []byte("null")})
	}
	*h = (*h)[n:]
}

// TestTurnAsks: a session asks no more in a turn than others can wait for, and goes on
// when half of what it has asked is answered.
func TestTurnAsks(t *testing.T) {
	const total, calls = 800, 1000 // a connection that is alone has a seventh of it
	var h holder
	n := &node{pool: actor.NewPool(1)}
	defer n.pool.Close()
	n.shares.init(total, true)
	s, w := &session{node: n}, new(scratch)
	s.cell.Post(sigReadable) // the test runs it
	x := newExchange(s, calls)
	x.key, x.network, x.lookups = new(keys.Entry), &network{resolver: &h}, calls
	for i := range x.calls {
		x.calls[i] = call{exchange: x, kind: lookedUp}
	}
	s.begin(x, w)
	turn := func(asked int, again bool) {
		t.Helper()
		before := len(h)
		if got := s.ask(); got != again || len(h)-before != asked {
			t.Errorf("asked %d, again %v; want %d, %v", len(h)-before, got, asked, again)
		}
	}
	turn(maxAsked, true)
	turn(50, false) // until it has what its key has left
	turn(0, false)
	if x := s.takeAnswered(); x != nil {
		t.Fatal("woken before anything is answered")
	}
	most := len(h)
	for left := calls - most; len(h) > 0; {
		h.answer(1)
		if s.takeAnswered() == nil {
			continue
		}
		if s.back(x) {
			break
		}
		before := len(h)
		for s.ask() {
		}
		left -= len(h) - before
		if left > 0 && len(h) < most/2 {
			t.Errorf("%d are asked with %d waiting, want about %d", len(h), left, most)
		}
		if len(h) > most {
			t.Errorf("%d are asked, want no more than %d", len(h), most)
		}
	}
	if x.unasked != 0 || x.out != 0 || len(h) != 0 || s.asked != 0 || x.key.Lookups.Load() != 0 || n.shares.asked.Load() != 0 {
		t.Errorf("at the end %d are not asked and %d of them out; the session has %d, the key %d, all %d",
			x.unasked, x.out, s.asked, x.key.Lookups.Load(), n.shares.asked.Load())
	}
	for i := range x.calls {
		if string(x.calls[i].answer.Result) != "null" {
			t.Fatalf("call %d has no answer", i)
		}
	}
}
