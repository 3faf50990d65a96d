package networks

import "github.com/ommer/ommer/schema/network"

// Network is a network as it is configured.
type Network struct {
	network.Network
	// Hosts are the names in the Host header by which clients ask for it, in lower case
	// and without a port. For the first network they are of no use: it is asked for by
	// all names that are no other's.
	Hosts []string
	// Upstreams are the URLs of its nodes, and Archive the paths of its history, as for
	// --upstream and --archive.
	Upstreams, Archive []string
	// Entry is where the list has it, for example "networks[1]", for messages about
	// mistakes. Empty: it is the one of the flags.
	Entry string
}

// MaxNetworks is how many networks a process may have. Each takes an actor system, a
// cache and two connections of a worker, and two subscriptions on each connection of an
// edge.
const MaxNetworks = 64
