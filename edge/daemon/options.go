// Package daemon assembles an edge process: links to the bus, the key directory,
// the client that asks workers, and the node that serves callers. The binary
// ommer-edge is a thin main around it, and the all-in-one server runs one beside
// a worker.
package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/edge/certs"
	"github.com/ommer/ommer/edge/overload"
)

// Options are the flags of an edge.
type Options struct {
	HTTPS   process.Addr `name:"https" placeholder:"ADDR" help:"Serve HTTPS and WSS here, for example :8443. Needs --tls-cert and --tls-key."`
	HTTP    process.Addr `name:"http" placeholder:"ADDR" help:"Serve the same without TLS, for use behind a balancer that terminates it."`
	TLSCert []string     `name:"tls-cert" placeholder:"FILE,..." type:"existingfile" help:"Certificate chains, PEM. Clients get the first that is for the name they ask for, or else the first. Read again when they change and on SIGHUP."`
	TLSKey  []string     `name:"tls-key" placeholder:"FILE,..." type:"existingfile" help:"Their keys, PEM, in the same order."`
	Tickets string       `name:"tls-ticket-keys" placeholder:"FILE" type:"existingfile" help:"Keys for session tickets, so that clients resume at any edge that has them: a line of 32 bytes in hex or base64 each, the first encrypts. Read again like certificates. Default: keys of its own, a new one each day."`

	ReusePort bool `name:"reuseport" help:"Share --https and --http with other edges that have this flag, so that a new edge can take over from an old one: it listens once it is ready, and leaves without losing a connection. Linux only."`

	Limits   edge.Limits     `embed:"" prefix:"limit-" group:"Limits of what one client, or all of them, can make the edge hold (0 means the default):"`
	Timeouts edge.Timeouts   `embed:"" prefix:"timeout-" group:"Time-outs (0 means the default):"`
	Overload overload.Limits `embed:"" prefix:"overload-" group:"When to shed load (0 means the default):"`
}

// maxLookup is the longest that the bus keeps a question.
const maxLookup = time.Hour

// Validate reports flags that do not go together, by their names.
func (o Options) Validate() error {
	switch {
	case o.HTTPS == "" && o.HTTP == "":
		return errors.New("--https ADDR or --http ADDR is needed, for example --https :8443 --tls-cert cert.pem --tls-key key.pem")
	case len(o.TLSCert) != len(o.TLSKey):
		return fmt.Errorf("--tls-cert and --tls-key need each other, file by file: there are %d and %d", len(o.TLSCert), len(o.TLSKey))
	case len(o.TLSCert) > 0 && o.HTTPS == "":
		return errors.New("--tls-cert is for --https, which is not given")
	case o.Tickets != "" && o.HTTPS == "":
		return errors.New("--tls-ticket-keys is for --https, which is not given")
	case o.ReusePort && runtime.GOOS != "linux":
		return errors.New("--reuseport is for Linux only")
	case o.Timeouts.Lookup > maxLookup, o.Timeouts.Lookup > 0 && o.Timeouts.Lookup < time.Millisecond:
		return fmt.Errorf("--timeout-lookup: must be 1ms to %v", maxLookup)
	}
	return errors.Join(o.Limits.Validate(), o.Overload.Validate())
}

// Certificates reads the files of certificates and ticket keys, nil when none are
// configured.
func (o Options) Certificates(log *slog.Logger, reg prometheus.Registerer) (*certs.Store, error) {
	if len(o.TLSCert) == 0 {
		return nil, nil //nolint:nilnil // none is a valid choice
	}
	pairs := make([]certs.Pair, len(o.TLSCert))
	for i := range pairs {
		pairs[i] = certs.Pair{Cert: o.TLSCert[i], Key: o.TLSKey[i]}
	}
	store, err := certs.New(certs.Config{Pairs: pairs, TicketKeys: o.Tickets, Logger: log, Registerer: reg})
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key, --tls-ticket-keys: %w", err)
	}
	return store, nil
}
