package main

import (
	"cmp"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/bus/process"
)

// leaf are the flags by which the embedded NATS server joins a cluster.
type leaf struct {
	URLs []bus.URL `name:"leaf" placeholder:"URL,..." help:"Where the cluster takes leaf nodes, such as tls://nats.example:7422; any of them will do. What this server's own worker cannot take, the cluster's workers of the same --network answer; without --upstream and --blocks they answer everything. The cluster asks nothing of this server, and each keeps its own API keys."`
	Nkey string    `name:"leaf-nkey" placeholder:"FILE" type:"existingfile" help:"File with the nkey seed to sign in with, of a user for this --name."`
	CA   string    `name:"leaf-ca" placeholder:"FILE" type:"existingfile" help:"Certificates that verify the cluster, instead of the system's."`
	Cert string    `name:"leaf-cert" placeholder:"FILE" type:"existingfile" help:"Client certificate to present; needs --leaf-key."`
	Key  string    `name:"leaf-key" placeholder:"FILE" type:"existingfile" help:"Key of the client certificate."`
}

func (l leaf) config(name string) embedded.Leaf {
	urls := make([]string, len(l.URLs))
	for i, u := range l.URLs {
		urls[i] = string(u)
	}
	return embedded.Leaf{Name: name, URLs: urls, SeedFile: l.Nkey, CAFile: l.CA, CertFile: l.Cert, KeyFile: l.Key}
}

// names are those of the edge and of the worker on the bus.
func (s *serve) names() (edge, worker string) {
	return string(cmp.Or(s.Name, process.DefaultName("edge"))), string(cmp.Or(s.Name, process.DefaultName("worker")))
}

// develops says whether the development node runs: when there is no other to ask, no
// list of networks, no archive, and no workers of a cluster, who would not know its chain.
func (s *serve) develops() bool {
	return len(s.Worker.Upstream)+len(s.Serves.Networks) == 0 && (s.Blocks != "" || len(s.Leaf.URLs)+len(s.Worker.Archive) == 0)
}
