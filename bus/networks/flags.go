package networks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/schema/network"
)

// Flags say which networks a process is for. The variable network of the program is the
// one that it is for without them.
type Flags struct {
	Network  process.Token `placeholder:"NAME" help:"Name of the network on the bus, in metrics and for API keys. Of mainnet, sepolia, hoodi and classic the chain is known, and nodes of another one are not asked; for any other name it is the chain of the first node that answers. With --networks: serve this one of them only. Default: all of --networks; without it the chain of the first node that answers, by the name ${network}."`
	Networks List          `placeholder:"YAML" help:"Several networks in one process. It is meant for the file of --config, where it is a list: networks: [{name: mainnet, upstreams: [\"URL\"]}, {name: sepolia, hosts: [sepolia.example.com], upstreams: [\"URL\"]}]. Each has a name and may have chain_id, hosts (requests whose Host header is one of these are for it; all others are for the first network), upstreams and archive (as --upstream and --archive), finality (how many blocks deep one is final, where nodes do not tell) and merged (the first block of proof of stake). One file does for edges and workers. See deploy/networks.yaml."`
}

// Chosen returns the networks that the flags ask for, one at least. name is that of the
// network when they ask for none.
func (f Flags) Chosen(name string) ([]Network, error) {
	switch {
	case len(f.Networks) > 0:
	case f.Network != "":
		return []Network{{Network: network.Named(string(f.Network))}}, nil
	default: // nobody has said which chain it is
		return []Network{{Network: network.Network{Name: name}}}, nil
	}
	if f.Network == "" {
		return f.Networks, nil
	}
	i := slices.IndexFunc(f.Networks, func(n Network) bool { return n.Name == string(f.Network) })
	if i < 0 {
		return nil, process.Usage{Err: fmt.Errorf("--network: %s is none of --networks, which has %s", f.Network, strings.Join(f.Networks.Names(), ", "))}
	}
	return f.Networks[i : i+1], nil
}
