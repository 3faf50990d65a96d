package main

// attack is a row of the table of attacks: what enemies do, and what is documented to
// become of them. Documented means deploy/LIMITS.md, README.md, or the RFC named.
type attack struct {
	name    string
	enemies int
	conduct func(e *enemy) // of one connection

	// rate is the acts per second of all enemies together: connections if they come
	// again and again, else what their conduct makes of it.
	rate  float64
	again bool // a new connection follows the one that has ended

	// answers and ends are those that may be met, and of each at least one has to
	// be. No answers means that none may be.
	answers, ends []string
	why           string // that these are the ends, and that growth is no more

	growth int     // MiB that the edge may take up, beyond what it has at rest and garbageRoom
	lasts  float64 // how long attackers act, in times of the usual; 0 means 1

	only      wireOnly
	alone     bool // once more from a single address
	aloneEnds []string
	processes int // of attackers; 0 means 1

	deaf   bool // nothing is read before the attack is over
	rawTLS bool // with TLS, conduct speaks it by itself
	keyed  bool // with rawTLS: after a handshake, with its keys
	window int  // SO_RCVBUF, 0 for the system's
}

// wireOnly is over what an attack makes sense.
type wireOnly int

const (
	overBoth wireOnly = iota
	overTCP
	overTLS
)

// attacks are all attacks, in the order in which they are made.
func attacks() []attack {
	var all []attack
	for _, part := range [][]attack{slowAttacks(), unreadAttacks(), requestAttacks(), messageAttacks(), connectionAttacks(), handshakeAttacks()} {
		all = append(all, part...)
	}
	return all
}

// find returns the attack of a name, nil if there is none.
func find(name string) *attack {
	for _, a := range attacks() {
		if a.name == name {
			return &a
		}
	}
	return nil
}
