package edge

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"

	"github.com/ommer/ommer/bus/keys"
)

// shares divides what the edge may have asked at a time among those who ask. Of what
// is free a key may have half, and so may an address; of what these leave of their
// half, a connection may have half. Whoever takes much thereby leaves room for those
// who take little, whoever is alone gets much, and nothing has to be set for either:
// dynamic thresholds, as switches share their buffers (Choudhury and Hahne, 1998).
// Nobody is refused by it: what is beyond the share waits in its session.
//
// A connection that has nothing asked may always ask one thing. So whatever waits is
// behind an answer to come, which wakes its session: nobody need be told that
// something became free. The total is exceeded by this, by less than there are
// connections.
type shares struct {
	total  int64
	asked  atomic.Int64
	byAddr bool // addresses are those of clients, and have shares

	// By a hash of the address, so that nothing grows. Those who meet in a slot
	// share a share.
	addrs [addrSlots]atomic.Int64
	seed  maphash.Seed
}

const addrSlots = 4096

func (p *shares) init(total int, byAddr bool) {
	p.total, p.byAddr, p.seed = int64(total), byAddr, maphash.MakeSeed()
}

// slot is where a visitor is counted: an IPv4 address, or the /64 of an IPv6 address,
// which one visitor usually has whole.
func (p *shares) slot(ip netip.Addr) uint16 {
	if ip.Is6() {
		ip = netip.PrefixFrom(ip.WithZone(""), 64).Masked().Addr()
	}
	return uint16(maphash.Comparable(p.seed, ip) % addrSlots)
}

// room is how many more lookups a connection may ask under a key that has asked mine
// by now. It may be negative.
func (p *shares) room(k *keys.Entry, slot uint16, mine int32) int {
	taken := k.Lookups.Load()
	if p.byAddr {
		taken = max(taken, p.addrs[slot].Load())
	}
	// The most for which mine+room <= ((free-room)/2 - (taken+room)) / 2.
	free := p.total - p.asked.Load()
	room := int(free-2*taken-4*int64(mine)) / 7
	if mine == 0 {
		room = max(room, 1)
	}
	return room
}

// add counts n lookups that are asked, or answered if n is negative.
func (p *shares) add(k *keys.Entry, slot uint16, n int32) {
	p.asked.Add(int64(n))
	k.Lookups.Add(int64(n))
	if p.byAddr {
		p.addrs[slot].Add(int64(n))
	}
}
