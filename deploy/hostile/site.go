package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ommer/ommer/deploy/child"
	"github.com/ommer/ommer/deploy/devnode"
	"github.com/ommer/ommer/edge/certs"
)

// site is where the edge is found. It travels to the processes of attackers.
type site struct {
	HTTP, HTTPS string // addresses
	Key         string // never to be printed
	CA          []byte // PEM that verifies the edge
}

// addr is the address without or with TLS.
func (s site) addr(secure bool) string {
	if secure {
		return s.HTTPS
	}
	return s.HTTP
}

// tls is what a client of the edge needs.
func (s site) tls() (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CA) {
		return nil, errors.New("the certificate cannot be read")
	}
	return &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"http/1.1"}}, nil
}

// stack is everything that runs: a node with the generated chain inside of this
// process, and nats-server, ommer-worker and ommer-edge.
type stack struct {
	site
	bin, dir string
	admin    string // address of the edge's

	stopNode           func() error
	nats, worker, edge *child.Process
}

const network = "hostile"

// startStack starts everything. The edge's time-outs are given by the flags.
func startStack(ctx context.Context, bin string, edgeFlags []string) (_ *stack, err error) {
	s := &stack{stopNode: func() error { return nil }}
	if s.bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "ommer-hostile-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	addrs, err := child.FreeAddrs(5)
	if err != nil {
		return nil, err
	}
	natsAddr, workerAdmin := addrs[0], addrs[1]
	s.HTTP, s.HTTPS, s.admin = addrs[2], addrs[3], addrs[4]

	node, err := devnode.New(devnode.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	nodeCtx, cancel := context.WithCancel(context.Background())
	nodeEnded := make(chan error, 1)
	go func() { nodeEnded <- node.Run(nodeCtx) }()
	s.stopNode = func() error { cancel(); return <-nodeEnded }

	host, port, err := net.SplitHostPort(natsAddr)
	if err != nil {
		return nil, err
	}
	nats := "nats://" + natsAddr
	if s.nats, err = s.start("nats-server", "--addr", host, "--port", port, "--jetstream", "--store_dir", filepath.Join(s.dir, "nats")); err != nil {
		return nil, err
	}
	if err = s.nats.Wait(ctx, func(ctx context.Context) error { return child.Accepts(ctx, natsAddr) }); err != nil {
		return nil, err
	}
	if s.worker, err = s.start("ommer-worker", "--nats", nats, "--network", network, "--upstream", node.URL(), "--admin", workerAdmin); err != nil {
		return nil, err
	}
	if s.Key, err = s.createKey(ctx, nats); err != nil {
		return nil, err
	}
	pair, err := certs.SelfSigned(s.dir)
	if err != nil {
		return nil, err
	}
	if s.CA, err = os.ReadFile(pair.Cert); err != nil {
		return nil, err
	}
	if s.edge, err = s.start("ommer-edge", append([]string{
		"--nats", nats, "--network", network, "--http", s.HTTP, "--https", s.HTTPS,
		"--tls-cert", pair.Cert, "--tls-key", pair.Key, "--admin", s.admin,
	}, edgeFlags...)...); err != nil {
		return nil, err
	}
	if err = s.worker.Wait(ctx, func(ctx context.Context) error { return child.Ready(ctx, workerAdmin) }); err != nil {
		return nil, err
	}
	return s, s.edge.Wait(ctx, func(ctx context.Context) error { return child.Ready(ctx, s.admin) })
}

func (s *stack) start(name string, args ...string) (*child.Process, error) {
	return child.Start(s.dir, name, filepath.Join(s.bin, name), args...)
}

// createKey issues the API key of everybody. The command writes it as the last line
// of its standard output.
func (s *stack) createKey(ctx context.Context, nats string) (string, error) {
	cmd := child.Command(ctx, filepath.Join(s.bin, "ommer"), "keys", "create", "--name", "hostile", "--nats", nats)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ommer keys create: %w: %s", err, stderr.Bytes())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1], nil
}

// stop ends everything and removes its files.
func (s *stack) stop() error {
	return errors.Join(s.edge.Stop(), s.worker.Stop(), s.nats.Stop(), s.stopNode(), os.RemoveAll(s.dir))
}

// pause waits for d, and says whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil // both may have been so
}
