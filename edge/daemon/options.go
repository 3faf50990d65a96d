// Package daemon assembles an edge process: links to the bus, the key directory,
// the client that asks workers, and the node that serves callers. The binary
// ommer-edge is a thin main around it, and the all-in-one server runs one beside
// a worker.
package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/edge"
)

// Options are the flags of an edge.
type Options struct {
	HTTPS   process.Addr `name:"https" placeholder:"ADDR" help:"Serve HTTPS and WSS here, for example :8443. Needs --tls-cert and --tls-key."`
	HTTP    process.Addr `name:"http" placeholder:"ADDR" help:"Serve the same without TLS, for use behind a balancer that terminates it."`
	TLSCert string       `name:"tls-cert" placeholder:"FILE" type:"existingfile" help:"Certificate chain, PEM."`
	TLSKey  string       `name:"tls-key" placeholder:"FILE" type:"existingfile" help:"Its key, PEM."`

	ReusePort bool `name:"reuseport" help:"Share --https and --http with other edges that have this flag, so that a new edge can take over from an old one: it listens once it is ready, and leaves without losing a connection. Linux only."`

	Limits   edge.Limits   `embed:"" prefix:"limit-" group:"Limits of what one client, or all of them, can make the edge hold (0 means the default):"`
	Timeouts edge.Timeouts `embed:"" prefix:"timeout-" group:"Time-outs (0 means the default):"`
}

// maxLookup is the longest that the bus keeps a question.
const maxLookup = time.Hour

// Validate reports flags that do not go together, by their names.
func (o Options) Validate() error {
	switch {
	case o.HTTPS == "" && o.HTTP == "":
		return errors.New("--https ADDR or --http ADDR is needed, for example --https :8443 --tls-cert cert.pem --tls-key key.pem")
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key need each other")
	case o.TLSCert != "" && o.HTTPS == "":
		return errors.New("--tls-cert is for --https, which is not given")
	case o.ReusePort && runtime.GOOS != "linux":
		return errors.New("--reuseport is for Linux only")
	case o.Timeouts.Lookup > maxLookup:
		return fmt.Errorf("--timeout-lookup: must be %v at most", maxLookup)
	}
	return o.Limits.Validate()
}

// TLS loads the certificate, nil when none is configured.
func (o Options) TLS() (*tls.Config, error) {
	if o.TLSCert == "" {
		return nil, nil //nolint:nilnil // none is a valid choice
	}
	return edge.LoadTLS(o.TLSCert, o.TLSKey)
}
