// Ommer-edge terminates client connections and asks the workers on the bus.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/networks"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/edge/daemon"
)

type options struct {
	Edge    daemon.Options  `embed:""`
	Bus     bus.Flags       `embed:"" group:"NATS:"`
	Asks    networks.Flags  `embed:"" group:"Networks whose workers are asked:"`
	Process process.Options `embed:""`

	Name    process.Token    `placeholder:"NAME" help:"Name of this edge on the bus: letters, digits, - and _. Default: the host's name and the process id."`
	Zone    process.Token    `placeholder:"NAME" help:"Where this edge is, such as a region: while workers with the same --zone are ready only they are asked."`
	Version kong.VersionFlag `env:"-" help:"Print the version and exit."`
}

// defaultNetwork is what is asked for when no network is given.
const defaultNetwork = "mainnet"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	return process.ExitCode(stderr, "ommer-edge", serve(args, stdout, stderr))
}

func serve(args []string, stdout, stderr io.Writer) error {
	var o options
	_, err := process.Parse(&o, args, process.Program{
		Name:         "ommer-edge",
		Description:  "Serves JSON-RPC over HTTPS and WebSocket on /v3/<API_KEY> and /ws/v3/<API_KEY>, and asks the workers on NATS.",
		AdminDefault: "127.0.0.1:9091",
		Out:          stdout, Err: stderr,
		Vars: kong.Vars{"network": defaultNetwork},
	})
	if err != nil {
		return err
	}
	asks, err := o.Asks.Chosen(defaultNetwork)
	if err != nil {
		return err
	}
	if err := o.Edge.Validate(); err != nil {
		return process.Usage{Err: err}
	}
	if o.Edge.HTTPS != "" && len(o.Edge.TLSCert) == 0 {
		return process.Usage{Err: errors.New("--https needs --tls-cert FILE and --tls-key FILE")}
	}
	if o.Edge.Timeouts.Drain >= o.Process.StopAfter {
		return process.Usage{Err: errors.New("--timeout-drain must be shorter than --stop-after")}
	}
	log := o.Process.Logger(stderr)
	admin, err := process.NewAdmin(o.Process.Admin, log)
	if err != nil {
		return err
	}
	certs, err := o.Edge.Certificates(log, admin.Registry)
	if err != nil {
		return err
	}
	if o.Name == "" {
		o.Name = process.DefaultName("edge")
	}
	d, err := daemon.New(daemon.Config{
		Options: o.Edge, Certs: certs, Name: string(o.Name), Networks: asks, Zone: o.Zone, Bus: o.Bus, Log: log, Admin: admin,
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w (edges that all have --reuseport share it)", err)
	}
	if err != nil {
		return err
	}
	log.Info("edge starts", "version", process.Version(), "name", o.Name, "network", networks.List(asks),
		"https", process.AddrString(d.Node().HTTPS()), "http", process.AddrString(d.Node().HTTP()), "admin", admin.Addr())
	p := process.Process{Log: log, Admin: admin, StopAfter: o.Process.StopAfter, Reload: d.Reload}
	return p.Run(context.Background(), process.Part{Name: "edge", Run: d.Run})
}
