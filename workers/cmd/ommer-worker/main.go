// Ommer-worker answers the questions on the bus from upstream Ethereum nodes, or
// from an archive of history.
package main

import (
	"context"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/networks"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/workers/daemon"
)

type options struct {
	Worker  daemon.Options  `embed:""`
	Bus     bus.Flags       `embed:"" group:"NATS:"`
	Serves  networks.Flags  `embed:"" group:"Networks whose questions are answered:"`
	Process process.Options `embed:""`

	Name    process.Token    `placeholder:"NAME" help:"Name of this worker on the bus: letters, digits, - and _. Default: the host's name and the process id."`
	Zone    process.Token    `placeholder:"NAME" help:"Where this worker is, such as a data centre: edges ask those of their own zone first. Letters, digits, - and _."`
	Version kong.VersionFlag `env:"-" help:"Print the version and exit."`
}

// defaultNetwork is what is served when no network is given.
const defaultNetwork = "mainnet"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	return process.ExitCode(stderr, "ommer-worker", serve(args, stdout, stderr))
}

func serve(args []string, stdout, stderr io.Writer) error {
	var o options
	_, err := process.Parse(&o, args, process.Program{
		Name:         "ommer-worker",
		Description:  "Answers the uncle lookups on NATS from upstream Ethereum nodes, or from an archive of history. Start as many as you like; they share the work.",
		AdminDefault: "127.0.0.1:9092",
		Out:          stdout, Err: stderr,
		Vars: kong.Vars{"network": defaultNetwork},
	})
	if err != nil {
		return err
	}
	serves, err := o.Serves.Chosen(defaultNetwork)
	if err != nil {
		return err
	}
	if err := o.Worker.Validate(); err != nil {
		return process.Usage{Err: err}
	}
	log := o.Process.Logger(stderr)
	admin, err := process.NewAdmin(o.Process.Admin, log)
	if err != nil {
		return err
	}
	if o.Name == "" {
		o.Name = process.DefaultName("worker")
	}
	all, err := daemon.NewWorkers(daemon.Config{
		Options: o.Worker, Name: string(o.Name), Zone: string(o.Zone), Bus: o.Bus, Log: log, Admin: admin,
	}, serves, false)
	if err != nil {
		return err
	}
	log.Info("worker starts", "version", process.Version(), "name", o.Name, "network", networks.List(serves), "admin", admin.Addr())
	p := process.Process{Log: log, Admin: admin, StopAfter: o.Process.StopAfter}
	return p.Run(context.Background(), process.Part{Name: "worker", Run: all.Run})
}
