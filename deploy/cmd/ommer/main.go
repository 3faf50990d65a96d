// Ommer is the all-in-one server and the operator's tool.
package main

import (
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/ommer/ommer/bus/process"
)

type commands struct {
	Serve   serve    `cmd:"" help:"Run everything in one process: a NATS server, an edge, a worker and, without --upstream and --archive, a development node."`
	Keys    keys     `cmd:"" help:"Issue, list and revoke API keys."`
	Archive archives `cmd:"" help:"Keep the uncles of history that nodes drop."`
	Bench   bench    `cmd:"" help:"Ask a service as many clients at once, and measure what they see."`

	Upstreams upstreams `cmd:"" help:"Find out what Ethereum nodes can do."`

	Version kong.VersionFlag `env:"-" help:"Print the version and exit."`
}

// streams are where a command writes: results to out, everything else to err.
type streams struct{ out, err io.Writer }

func main() { os.Exit(run(os.Args[1:], streams{os.Stdout, os.Stderr})) }

func run(args []string, std streams) int {
	var c commands
	ctx, err := process.Parse(&c, args, process.Program{
		Name:         "ommer",
		Description:  "Answers Ethereum uncle lookups over JSON-RPC.",
		AdminDefault: "127.0.0.1:9090",
		Out:          std.out, Err: std.err,
		Vars: kong.Vars{"data": dataDir(), "network": defaultNetwork},
	})
	if err == nil {
		err = ctx.Run(std)
	}
	return process.ExitCode(std.err, "ommer", err)
}
