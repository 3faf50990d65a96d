package edge

import (
	"bytes"
	"fmt"

	"github.com/ommer/ommer/schema"
)

// network is one that the node asks for.
type network struct {
	name     string
	resolver schema.Resolver
	number   uint8 // among the node's
}

// networks are those that the node asks for, by the names under which clients reach it.
type networks struct {
	list   []network // the first is for all names that are no other's
	byHost map[string]*network
}

// maxNetworks is how many a session can tell apart.
const maxNetworks = 256

func newNetworks(cfg Config) (networks, error) {
	all := networks{list: []network{{name: cfg.Network, resolver: cfg.Resolver}}, byHost: map[string]*network{}}
	if len(cfg.Others) >= maxNetworks {
		return all, fmt.Errorf("edge: %d networks, at most %d are possible", len(cfg.Others)+1, maxNetworks)
	}
	for i, n := range cfg.Others {
		all.list = append(all.list, network{name: n.Name, resolver: n.Resolver, number: uint8(i + 1)})
	}
	for i, n := range cfg.Others { // now the list stays where it is
		for _, host := range n.Hosts {
			all.byHost[host] = &all.list[i+1]
		}
	}
	return all, nil
}

// at returns the network of a number.
func (n *networks) at(number uint8) *network { return &n.list[number] }

// of returns the network that a request is for, by its Host: a name with or without a
// port, in any case and with or without the dot of the root; empty in HTTP/1.0. The name
// that TLS was asked for is not looked at: it chooses the certificate, and a connection
// may carry requests to all names of that (RFC 9110 section 7.4).
func (n *networks) of(host []byte) *network {
	if len(n.byHost) == 0 {
		return &n.list[0]
	}
	if colon := bytes.LastIndexByte(host, ':'); colon >= 0 {
		host = host[:colon]
	}
	host = bytes.TrimSuffix(host, []byte{'.'})
	var low [maxHost]byte
	if len(host) > len(low) {
		return &n.list[0]
	}
	for i, c := range host {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		low[i] = c
	}
	if found := n.byHost[string(low[:len(host)])]; found != nil { // without a copy on the heap
		return found
	}
	return &n.list[0]
}

// maxHost is the length of the longest name in the DNS, RFC 1035 section 2.3.4.
const maxHost = 253
