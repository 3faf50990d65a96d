package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ommer/ommer/deploy/child"
	"github.com/ommer/ommer/deploy/testchain"
	"github.com/ommer/ommer/edge/certs"
)

// stack is everything that runs: geth on the generated chain, and Ommer with that
// geth as its upstream.
type stack struct {
	bin, dir string

	geth, nats, worker, edge *child.Process
	bare, netHTTP            *child.Process // yardsticks

	gethAddr, natsURL     string
	bareAddr, netHTTPAddr string
	http, https           string // addresses of the edge
	key                   string // never to be printed
	certFile, keyFile     string
	ca                    []byte

	questions   []question
	answer      []byte // to the first question
	answerBytes int    // of one answer, on average
	versions    []string
}

const network = "bench"

// startStack starts everything and asks every question once of each side.
func startStack(ctx context.Context, bin string, progress func(string, ...any)) (_ *stack, err error) {
	bin, err = filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	s := &stack{bin: bin}
	if s.dir, err = os.MkdirTemp("", "ommer-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.questions, err = questions(); err != nil {
		return nil, err
	}
	progress("starting geth, nats-server, ommer-worker and ommer-edge from %s", s.bin)
	for _, step := range []func(context.Context) error{s.askVersions, s.startGeth, s.startNATS, s.startWorker, s.createKey, s.certify, s.startEdge, s.firstAnswer, s.startYardsticks, s.tryAll, s.rest} {
		if err = step(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// stop ends everything and removes its files.
func (s *stack) stop() error {
	return errors.Join(s.netHTTP.Stop(), s.bare.Stop(), s.edge.Stop(), s.worker.Stop(), s.nats.Stop(), s.geth.Stop(), os.RemoveAll(s.dir))
}

func (s *stack) program(name string) string { return filepath.Join(s.bin, name) }

// askVersions asks the programs what they are, and so finds those that are missing.
func (s *stack) askVersions(ctx context.Context) error {
	for _, name := range []string{"ommer", "ommer-edge", "ommer-worker", "nats-server", "geth"} {
		out, err := child.Command(ctx, s.program(name), "--version").CombinedOutput()
		if err != nil {
			return fmt.Errorf("--bin: %s --version: %w", name, err)
		}
		line, _, _ := strings.Cut(string(out), "\n")
		s.versions = append(s.versions, line)
	}
	return nil
}

// startGeth has geth import the chain and serve it.
func (s *stack) startGeth(ctx context.Context) error {
	genesis, err := testchain.Genesis()
	if err != nil {
		return err
	}
	genesisJSON, err := json.Marshal(genesis)
	if err != nil {
		return err
	}
	var blocks bytes.Buffer
	if err = testchain.Write(&blocks); err != nil {
		return err
	}
	genesisFile, blocksFile := filepath.Join(s.dir, "genesis.json"), filepath.Join(s.dir, "chain.rlp")
	if err = errors.Join(os.WriteFile(genesisFile, genesisJSON, 0o600), os.WriteFile(blocksFile, blocks.Bytes(), 0o600)); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "geth")
	for _, args := range [][]string{
		{"--datadir", data, "init", genesisFile},
		{"--datadir", data, "import", blocksFile},
	} {
		if out, failed := child.Command(ctx, s.program("geth"), args...).CombinedOutput(); failed != nil {
			return fmt.Errorf("geth %s: %w: %s", args[2], failed, out)
		}
	}
	addrs, err := child.FreeAddrs(2)
	if err != nil {
		return err
	}
	s.gethAddr = addrs[0]
	s.geth, err = child.Start(s.dir, "geth", s.program("geth"),
		"--datadir", data, "--networkid", fmt.Sprint(testchain.ChainID), "--syncmode", "full", "--gogc", "100",
		"--http", "--http.addr", "127.0.0.1", "--http.port", port(addrs[0]), "--http.api", "eth",
		"--authrpc.addr", "127.0.0.1", "--authrpc.port", port(addrs[1]),
		"--nodiscover", "--maxpeers", "0", "--port", "0", "--nat", "none", "--ipcdisable")
	if err != nil {
		return err
	}
	return s.geth.Wait(ctx, func(ctx context.Context) error { return child.Accepts(ctx, s.gethAddr) })
}

func (s *stack) startNATS(ctx context.Context) error {
	addrs, err := child.FreeAddrs(1)
	if err != nil {
		return err
	}
	s.natsURL = "nats://" + addrs[0]
	// Its heap is small, so that at Go's own setting it collects constantly: README.
	s.nats, err = child.Start(s.dir, "nats-server", "env", "GOGC=400", s.program("nats-server"),
		"--addr", "127.0.0.1", "--port", port(addrs[0]), "--jetstream", "--store_dir", filepath.Join(s.dir, "nats"))
	if err != nil {
		return err
	}
	return s.nats.Wait(ctx, func(ctx context.Context) error { return child.Accepts(ctx, addrs[0]) })
}

func (s *stack) startWorker(ctx context.Context) error {
	addrs, err := child.FreeAddrs(1)
	if err != nil {
		return err
	}
	s.worker, err = child.Start(s.dir, "ommer-worker", s.program("ommer-worker"),
		"--nats", s.natsURL, "--network", network, "--upstream", "http://"+s.gethAddr, "--admin", addrs[0])
	if err != nil {
		return err
	}
	return s.worker.Wait(ctx, func(ctx context.Context) error { return child.Ready(ctx, addrs[0]) })
}

// createKey issues the API key. The command writes it as the last line of its
// standard output.
func (s *stack) createKey(ctx context.Context) error {
	cmd := child.Command(ctx, s.program("ommer"), "keys", "create", "--name", "bench", "--nats", s.natsURL)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("ommer keys create: %w: %s", err, stderr.Bytes())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	s.key = lines[len(lines)-1]
	return nil
}

func (s *stack) certify(context.Context) error {
	pair, err := certs.SelfSigned(s.dir)
	if err != nil {
		return err
	}
	s.certFile, s.keyFile = pair.Cert, pair.Key
	s.ca, err = os.ReadFile(pair.Cert)
	return err
}

func (s *stack) startEdge(ctx context.Context) error { return s.newEdge(ctx) }

// newEdge starts an edge, in place of the one before if there is one, with more
// flags.
func (s *stack) newEdge(ctx context.Context, flags ...string) error {
	if err := s.edge.Stop(); err != nil {
		return err
	}
	s.edge = nil
	addrs, err := child.FreeAddrs(3)
	if err != nil {
		return err
	}
	s.http, s.https = addrs[0], addrs[1]
	s.edge, err = child.Start(s.dir, "ommer-edge", s.program("ommer-edge"), s.edgeFlags(addrs[2], flags...)...)
	if err != nil {
		return err
	}
	return s.edge.Wait(ctx, func(ctx context.Context) error { return child.Ready(ctx, addrs[2]) })
}

// firstAnswer asks the edge what the yardsticks will say.
func (s *stack) firstAnswer(ctx context.Context) error {
	d, err := newDialer(s.endpoint(pathHTTP), s.questions[:1])
	if err != nil {
		return err
	}
	c, err := d.Dial(ctx, 0)
	if err != nil {
		return err
	}
	answer, err := c.Ask(0)
	s.answer = slices.Clone(answer)
	return errors.Join(err, c.Close())
}

// edgeFlags are those of an edge at the stack's addresses, and more.
func (s *stack) edgeFlags(admin string, more ...string) []string {
	return append([]string{
		"--nats", s.natsURL, "--network", network, "--http", s.http, "--https", s.https,
		"--tls-cert", s.certFile, "--tls-key", s.keyFile, "--admin", admin,
		// Every client is at one address here, and has one key.
		"--limit-conns-per-addr", "1000000", "--limit-conns-per-key", "1000000",
	}, more...)
}

// tryAll asks every question on every path, so that a mistake is found before
// anything is measured.
func (s *stack) tryAll(ctx context.Context) error {
	size, count := 0, 0
	for _, name := range pathNames {
		questions := s.questionsOf(name)
		d, err := newDialer(s.endpoint(name), questions)
		if err != nil {
			return err
		}
		c, err := d.Dial(ctx, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for i := range questions {
			answer, err := c.Ask(i)
			if err != nil {
				return errors.Join(fmt.Errorf("%s: %w", name, err), c.Close())
			}
			size, count = size+len(answer), count+1
		}
		if err := c.Close(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	s.answerBytes = size / count
	return nil
}

// When the processes count as at rest: all of them together use no more CPU than
// restCPU while restOver passes. restAtMost bounds the wait; whoever is busy even then
// shows in the table.
const (
	restOver   = time.Second
	restCPU    = 50 * time.Millisecond
	restAtMost = 30 * time.Second
)

// rest waits until nobody is busy with having been started: geth is for some
// seconds after it begins to answer.
func (s *stack) rest(ctx context.Context) error {
	for end := time.Now().Add(restAtMost); time.Now().Before(end); {
		before, err := s.cpu()
		if err != nil {
			return err
		}
		if !pause(ctx, restOver) {
			return ctx.Err()
		}
		after, err := s.cpu()
		if err != nil {
			return err
		}
		if used := after.minus(before); used.ours()+used.Geth <= restCPU {
			return nil
		}
	}
	return nil
}

// Names of the paths that requests take.
const (
	pathHTTPS     = "https"
	pathHTTPSGzip = "https-gzip"
	pathHTTP      = "http"
	pathHTTPGzip  = "http-gzip"
	pathWSS       = "wss"
	pathWS        = "ws"
	pathGeth      = "geth"
	pathGethGzip  = "geth-gzip"
	pathBare      = "bare-nbio"
	pathNetHTTP   = "net-http-tls"
)

var pathNames = []string{pathHTTPS, pathHTTPSGzip, pathHTTP, pathHTTPGzip, pathWSS, pathWS, pathGeth, pathGethGzip, pathBare, pathNetHTTP}

// endpoint is where a path begins.
func (s *stack) endpoint(path string) endpoint {
	switch path {
	case pathHTTPS, pathHTTPSGzip:
		return endpoint{Addr: s.https, Path: "/v3/" + s.key, CA: s.ca, Gzip: path == pathHTTPSGzip}
	case pathHTTP, pathHTTPGzip:
		return endpoint{Addr: s.http, Path: "/v3/" + s.key, Gzip: path == pathHTTPGzip}
	case pathWSS:
		return endpoint{Addr: s.https, Path: "/ws/v3/" + s.key, WS: true, CA: s.ca}
	case pathWS:
		return endpoint{Addr: s.http, Path: "/ws/v3/" + s.key, WS: true}
	case pathBare:
		return endpoint{Addr: s.bareAddr, Path: "/v3/" + s.key}
	case pathNetHTTP:
		return endpoint{Addr: s.netHTTPAddr, Path: "/v3/" + s.key, CA: s.ca}
	default:
		return endpoint{Addr: s.gethAddr, Path: "/", Gzip: path == pathGethGzip}
	}
}

// questionsOf is what is asked on a path: the yardsticks know one answer.
func (s *stack) questionsOf(path string) []question {
	if path == pathBare || path == pathNetHTTP {
		return s.questions[:1]
	}
	return s.questions
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
