// Echo is the edge with another application: what comes in goes out again. It is for
// suites that test HTTP and WebSocket servers from outside, such as Autobahn's: the
// event loop, the parsers, the sessions, their time-outs and their drain are those
// that serve JSON-RPC, only the longest body and message are longer.
//
//	go run ./deploy/e2e/cmd/echo --http 127.0.0.1:8080 --https 127.0.0.1:8443
//
// GET / says OK, any other method on / gets its body back, and the WebSocket /echo
// sends back each message, text as text and binary as binary. The certificate signs
// itself and is made anew each time; the log says where it is.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/edge/certs"
)

type options struct {
	HTTPS process.Addr `name:"https" placeholder:"ADDR" help:"Serve HTTPS and WSS here, with a certificate that signs itself."`
	HTTP  process.Addr `name:"http" placeholder:"ADDR" help:"Serve the same without TLS."`

	Process process.Options `embed:""`
}

// longest is the longest body and message: Autobahn sends 16 MiB.
const longest = 16 << 20

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return process.ExitCode(stderr, "echo", serve(ctx, args, stdout, stderr))
}

func serve(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var o options
	_, err = process.Parse(&o, args, process.Program{
		Name: "echo", Description: "Serves / and the WebSocket /echo: what comes in goes out again.",
		Out: stdout, Err: stderr,
	})
	if err != nil {
		return err
	}
	if o.HTTPS == "" && o.HTTP == "" {
		return process.Usage{Err: errors.New("--http ADDR or --https ADDR is needed, for example --http 127.0.0.1:8080")}
	}
	log := o.Process.Logger(stderr)
	cfg := edge.Config{
		HTTPS: string(o.HTTPS), HTTP: string(o.HTTP), Logger: log,
		Limits: edge.Limits{Body: longest, Message: longest},
	}
	if o.HTTPS != "" {
		dir, err := os.MkdirTemp("", "echo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder: nothing is lost
		pair, err := certs.SelfSigned(dir)
		if err != nil {
			return err
		}
		store, err := certs.New(certs.Config{Pairs: []certs.Pair{pair}})
		if err != nil {
			return err
		}
		cfg.TLS = store.TLS()
		log.Info("certificate", "file", pair.Cert)
	}
	admin, err := process.NewAdmin(o.Process.Admin, log)
	if err != nil {
		return err
	}
	cfg.Registerer = admin.Registry
	node, err := edge.NewEcho(cfg)
	if err != nil {
		return err
	}
	log.Info("echo starts", "https", process.AddrString(node.HTTPS()), "http", process.AddrString(node.HTTP()))
	p := process.Process{Log: log, Admin: admin, StopAfter: o.Process.StopAfter}
	return p.Run(ctx, process.Part{Name: "echo", Run: node.Run})
}
