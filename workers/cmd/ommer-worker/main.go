// Ommer-worker answers the questions on the bus from upstream Ethereum nodes, or
// from an archive of history.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/workers/daemon"
)

type options struct {
	Worker  daemon.Options  `embed:""`
	Bus     bus.Flags       `embed:"" group:"NATS:"`
	Process process.Options `embed:""`

	Name    process.Token    `placeholder:"NAME" help:"Name of this worker on the bus: letters, digits, - and _. Default: the host's name and the process id."`
	Network process.Token    `default:"mainnet" help:"Network whose questions are answered."`
	Zone    process.Token    `placeholder:"NAME" help:"Where this worker is, such as a data centre: edges ask those of their own zone first. Letters, digits, - and _."`
	Version kong.VersionFlag `env:"-" help:"Print the version and exit."`
}

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
	})
	if err != nil {
		return err
	}
	if len(o.Worker.Upstream)+len(o.Worker.Archive) == 0 {
		return process.Usage{Err: errors.New("--upstream URL,... is needed, or --archive PATH,...; for example --upstream http://127.0.0.1:8545")}
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
	d, err := daemon.New(daemon.Config{
		Options: o.Worker, Name: string(o.Name), Network: string(o.Network), Zone: string(o.Zone), Bus: o.Bus, Log: log, Admin: admin,
	})
	if err != nil {
		return err
	}
	log.Info("worker starts", "version", process.Version(), "name", o.Name, "network", o.Network, "admin", admin.Addr())
	p := process.Process{Log: log, Admin: admin, StopAfter: o.Process.StopAfter}
	return p.Run(context.Background(), process.Part{Name: "worker", Run: d.Run})
}
