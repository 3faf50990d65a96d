package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	registry "github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/bus/networks"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/deploy/devnode"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/edge/certs"
	edged "github.com/ommer/ommer/edge/daemon"
	"github.com/ommer/ommer/edge/overload"
	"github.com/ommer/ommer/schema"
	workerd "github.com/ommer/ommer/workers/daemon"
	"github.com/ommer/ommer/workers/upstream"
)

// defaultNetwork is what serve names its chain when it is not told, whichever that is.
const defaultNetwork = "local"

// serve is the all-in-one server.
type serve struct {
	HTTPS   process.Addr    `name:"https" placeholder:"ADDR" default:"127.0.0.1:8443" help:"Serve HTTPS and WSS here. Default ${default}; empty for none."`
	HTTP    process.Addr    `name:"http" placeholder:"ADDR" default:"127.0.0.1:8080" help:"Serve the same without TLS. Default ${default}; empty for none."`
	TLSCert []string        `name:"tls-cert" placeholder:"FILE,..." type:"existingfile" help:"Certificate chains, PEM. Clients get the first that is for the name they ask for, or else the first. Read again when they change and on SIGHUP. Without it a self-signed one is made and kept in the data folder."`
	TLSKey  []string        `name:"tls-key" placeholder:"FILE,..." type:"existingfile" help:"Their keys, PEM, in the same order."`
	Tickets string          `name:"tls-ticket-keys" placeholder:"FILE" type:"existingfile" help:"Keys for session tickets, so that clients resume at any server that has them: a line of 32 bytes in hex or base64 each, the first encrypts. Read again like certificates. Default: keys of its own, a new one each day."`
	Blocks  string          `placeholder:"FILE|DIR" type:"path" help:"Blocks for the development node: era1 files or exports of geth. Default: a small generated chain."`
	DevKey  registry.Static `placeholder:"KEY" help:"API key that is accepted as it is, 8 to 64 of A-Z a-z 0-9 . _ ~ -. Default: one that is made once and kept in the data folder."`
	Data    string          `placeholder:"DIR" default:"${data}" type:"path" help:"Folder for the NATS store, the certificate and the key. Default ${default}."`
	NATS    process.Addr    `name:"nats-listen" placeholder:"ADDR" default:"127.0.0.1:4222" help:"Address of the embedded NATS server; it has no password, keep it private. Default ${default}."`
	Name    process.Token   `placeholder:"NAME" help:"Name of the edge and of the worker on the bus, letters, digits, - and _. A leaf has the name that its user on the cluster is made for. Default: the host's name and the process id."`
	Leaf    leaf            `embed:"" group:"Joining a cluster as a leaf node:"`
	Serves  networks.Flags  `embed:"" group:"Networks:"`

	Limits   edge.Limits     `embed:"" prefix:"limit-" group:"Limits of what one client, or all of them, can make the edge hold (0 means the default):"`
	Timeouts edge.Timeouts   `embed:"" prefix:"timeout-" group:"Time-outs (0 means the default):"`
	Overload overload.Limits `embed:"" prefix:"overload-" group:"When to shed load (0 means the default):"`
	Worker   workerd.Options `embed:""`
	Process  process.Options `embed:""`
}

// Run implements the command.
func (s *serve) Run(std streams) (err error) {
	switch {
	case s.Blocks != "" && len(s.Worker.Upstream) > 0:
		return process.Usage{Err: errors.New("--blocks is for the development node, which does not run with --upstream")}
	case s.Blocks != "" && len(s.Serves.Networks) > 0:
		return process.Usage{Err: errors.New("--blocks is for the development node, which does not run with --networks")}
	}
	serves, err := s.Serves.Chosen(defaultNetwork)
	if err != nil {
		return err
	}
	log := s.Process.Logger(std.err)
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	key, err := devKey(s.DevKey, filepath.Join(s.Data, "dev-key"))
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	options := edged.Options{HTTPS: s.HTTPS, HTTP: s.HTTP, TLSCert: s.TLSCert, TLSKey: s.TLSKey, Tickets: s.Tickets, Limits: s.Limits, Timeouts: s.Timeouts, Overload: s.Overload}
	if err := errors.Join(options.Validate(), s.Worker.Validate()); err != nil {
		return process.Usage{Err: err}
	}
	certFile := "" // that clients must be told to trust
	if s.HTTPS != "" && len(s.TLSCert) == 0 {
		pair, err := certs.SelfSigned(s.Data)
		if err != nil {
			return err
		}
		certFile = pair.Cert
		options.TLSCert, options.TLSKey = []string{pair.Cert}, []string{pair.Key}
	}
	admin, err := process.NewAdmin(s.Process.Admin, log)
	if err != nil {
		return err
	}
	store, err := options.Certificates(log.With("part", "edge"), admin.Registry)
	if err != nil {
		return err
	}

	edgeName, workerName := s.names()
	nats, err := embedded.New(embedded.Config{
		Addr: string(s.NATS), Dir: filepath.Join(s.Data, "nats"), Leaf: s.Leaf.config(edgeName), Logger: log.With("part", "nats"),
	})
	if err != nil {
		return fmt.Errorf("--nats-listen, --data, --leaf: %w", err)
	}
	parts := []process.Part{{Name: "nats", Run: func(ctx context.Context) error {
		<-ctx.Done()
		nats.Close()
		return nil
	}}}
	defer func() {
		if err != nil {
			nats.Close()
		}
	}()
	inner := bus.Flags{NATS: []bus.URL{bus.URL(nats.URL())}}
	if err := (keyBus{inner}).with(func(context.Context, *registry.Registry) error { return nil }); err != nil {
		return err // the bucket is made by opening it
	}
	example := schema.Question{Block: schema.Number(0x29c)} // mainnet's best known uncle
	if s.develops() {
		node, err := devnode.New(devnode.Config{Blocks: s.Blocks, Logger: log.With("part", "devnode")})
		if err != nil {
			return process.Usage{Err: fmt.Errorf("--blocks: %w", err)}
		}
		if of := serves[0]; of.ChainID != 0 && of.ChainID != node.ChainID() {
			_ = node.Close() // nobody has asked it
			return process.Usage{Err: fmt.Errorf("--network: %s is chain %d, and the development node has blocks of chain %d", of.Name, of.ChainID, node.ChainID())}
		}
		s.Worker.Upstream = []upstream.URL{upstream.URL(node.URL())}
		if number, ok := node.Uncled(); ok {
			example.Block = schema.Number(number)
		}
		parts = append(parts, process.Part{Name: "devnode", Run: node.Run})
	}
	workers, err := workerd.NewWorkers(workerd.Config{
		Options: s.Worker, Name: workerName, Zone: edgeName, Bus: inner, Log: log.With("part", "worker"), Admin: admin,
	}, serves, len(s.Leaf.URLs) > 0)
	if err != nil {
		return err
	}
	if len(workers) > 0 {
		if number, ok := workers[0].Uncled(); ok && !workers[0].Asks() {
			example.Block = schema.Number(number)
		}
		parts = append(parts, process.Part{Name: "worker", Run: workers.Run})
	}
	front, err := edged.New(edged.Config{
		Options: options, Certs: store, Name: edgeName, Networks: serves, Zone: process.Token(edgeName),
		Bus: inner, DevKey: key, Log: log.With("part", "edge"), Admin: admin,
	})
	if err != nil {
		return err
	}
	parts = append(parts, process.Part{Name: "edge", Run: front.Run})
	parts = append(parts, process.Part{Name: "banner", Run: func(ctx context.Context) error {
		if !front.WaitReady(ctx) {
			return nil
		}
		banner{
			https: front.Node().HTTPS(), http: front.Node().HTTP(), admin: admin.Addr(), nats: nats.URL(),
			key: key, certFile: certFile, networks: serves, example: example,
		}.print(std.out)
		<-ctx.Done()
		return nil
	}})
	p := process.Process{Log: log, Admin: admin, StopAfter: s.Process.StopAfter, Reload: front.Reload}
	return p.Run(context.Background(), parts...)
}
