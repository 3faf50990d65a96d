package nio

import (
	"net"
	"net/netip"
	"sync"
)

// gate counts connections, in all and by address, and the handshakes of each
// address, and says no where a limit is reached. Its map has at most as many entries as there are
// connections.
type gate struct {
	maxConns, maxConnsPerAddr int
	maxHandshakesPerAddr      int
	mu                        sync.Mutex
	conns                     int
	addrs                     map[netip.Addr]visits
	empty                     chan struct{} // closed when conns is 0 after drain was called
	draining                  bool
}

func (g *gate) init(cfg Config) {
	g.maxConns, g.maxConnsPerAddr = cfg.MaxConns, cfg.MaxConnsPerAddr
	g.maxHandshakesPerAddr = cfg.HandshakesPerAddr
	g.addrs = map[netip.Addr]visits{}
}

// visits is what one address has open.
type visits struct{ conns, handshakes int32 }

// enter counts a connection in. It returns the reason when it may not be opened,
// else "".
func (g *gate) enter(a netip.Addr) refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.addrs[a]
	switch {
	case g.draining:
		return refusedClosing
	case g.conns >= g.maxConns:
		return refusedConns
	case g.maxConnsPerAddr >= 0 && int(v.conns) >= g.maxConnsPerAddr:
		return refusedConnsPerAddr
	}
	g.conns++
	v.conns++
	g.addrs[a] = v
	return ""
}

// leave counts a connection out.
func (g *gate) leave(a netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns--
	v := g.addrs[a]
	v.conns--
	if v.conns <= 0 {
		delete(g.addrs, a)
	} else {
		g.addrs[a] = v
	}
	g.checkEmpty()
}

// beginHandshake counts a handshake of a connection that has entered.
func (g *gate) beginHandshake(a netip.Addr) refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.addrs[a]
	if g.maxHandshakesPerAddr >= 0 && int(v.handshakes) >= g.maxHandshakesPerAddr {
		return refusedHandshakesPerAddr
	}
	v.handshakes++
	g.addrs[a] = v
	return ""
}

// endHandshake is called before the connection leaves.
func (g *gate) endHandshake(a netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.addrs[a]
	v.handshakes--
	g.addrs[a] = v
}

// drain lets nobody in any more and returns a channel that is closed when the
// last connection has left.
func (g *gate) drain() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.draining {
		g.draining = true
		g.empty = make(chan struct{})
		g.checkEmpty()
	}
	return g.empty
}

func (g *gate) checkEmpty() {
	if g.draining && g.conns == 0 {
		close(g.empty)
	}
}

// addrKey is what one visitor is counted by: the IPv4 address, or the /64 of an
// IPv6 address, which one visitor usually has whole.
func addrKey(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := t.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}
