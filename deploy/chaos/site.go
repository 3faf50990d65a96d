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
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ommer/ommer/deploy/child"
)

// How many machines there are of each role.
const (
	servers   = 3
	upstreams = 2
	workers   = 3
	edges     = 2
)

const network = "chaos"

// Ports, the same on each machine.
const (
	natsPort     = 4222
	clusterPort  = 6222
	monitorPort  = 8222
	httpPort     = 8080
	adminPort    = 9090
	upstreamPort = 8545
)

// site is the deployment.
type site struct {
	bin, dir string
	machines []*machine
	key      string // never to be printed
}

// startSite makes the network and starts everything on it. Whatever the error, what it
// returns is to be stopped.
func startSite(ctx context.Context, bin, dir string, t *truth) (*site, error) {
	s := &site{bin: bin, dir: dir}
	blocks := filepath.Join(dir, "chain.rlp")
	if err := t.write(blocks); err != nil {
		return s, err
	}
	for _, r := range []struct {
		role  role
		count int
	}{{server, servers}, {upstream, upstreams}, {worker, workers}, {edge, edges}} {
		for n := range r.count {
			name, addr := fmt.Sprintf("%s-%d", r.role, n+1), fmt.Sprintf("10.77.0.%d", 10+len(s.machines))
			h, err := makeHost(ctx, name, addr)
			if err != nil {
				return s, err
			}
			s.machines = append(s.machines, &machine{host: h, role: r.role, number: n, dir: dir})
		}
	}
	for _, m := range s.machines {
		if err := s.equip(m, blocks); err != nil {
			return s, err
		}
	}
	for _, step := range []func(context.Context) error{
		s.startAll(server, upstream), s.createKey, s.replicate, s.startAll(worker, edge),
	} {
		if err := step(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

// equip says what runs on a machine.
func (s *site) equip(m *machine, blocks string) error {
	switch m.role {
	case server:
		file := filepath.Join(s.dir, m.name+".conf")
		// The collector's setting is the one that operators are told of: README.
		m.command = []string{"env", "GOGC=400", filepath.Join(s.bin, "nats-server"), "--config", file}
		m.health, m.port = "/healthz", monitorPort
		return os.WriteFile(file, s.serverConfig(m), 0o600)
	case upstream:
		program, err := os.Executable()
		m.command = []string{program, upstreamCommand, blocks, m.at(upstreamPort)}
		m.health, m.port = healthPath, upstreamPort
		return err
	case worker:
		m.command = []string{
			filepath.Join(s.bin, "ommer-worker"), "--name", m.name, "--network", network, "--nats", s.natsURLs(),
			"--upstream", "http://" + strings.Join(s.addrs(upstream, upstreamPort), ",http://"), "--admin", m.at(adminPort),
			"--cache-bytes", cacheBytes,
		}
	case edge:
		m.command = []string{
			filepath.Join(s.bin, "ommer-edge"), "--name", m.name, "--network", network, "--nats", s.natsURLs(),
			"--http", m.at(httpPort), "--admin", m.at(adminPort), "--timeout-lookup", lookupTime.String(), "--timeout-drain", "3s",
		}
	}
	m.health, m.port = "/readyz", adminPort
	return nil
}

// cacheBytes is what a worker may keep: part of the chain, so that the upstreams are
// asked as long as the run lasts.
const cacheBytes = "262144"

// lookupTime is after which an edge gives a call up. It is half of the default, so
// that stalls end sooner than faults.
const lookupTime = 5 * time.Second

// serverConfig is the configuration of a NATS server. The times of the lame duck mode
// are the shortest that it takes.
func (s *site) serverConfig(m *machine) []byte {
	return fmt.Appendf(nil, `server_name: %s
listen: "%s"
http: "%s"
jetstream { store_dir: %q }
cluster { name: chaos, listen: "%s", routes: [ nats://%s ] }
lame_duck_duration: "30s"
lame_duck_grace_period: "1s"
`, m.name, m.at(natsPort), m.at(monitorPort), filepath.Join(s.dir, m.name), m.at(clusterPort), strings.Join(s.addrs(server, clusterPort), ", nats://"))
}

// of are the machines of a role.
func (s *site) of(r role) (ms []*machine) {
	for _, m := range s.machines {
		if m.role == r {
			ms = append(ms, m)
		}
	}
	return ms
}

// hosts are those of the machines of a role.
func (s *site) hosts(r role) (hs []host) {
	for _, m := range s.of(r) {
		hs = append(hs, m.host)
	}
	return hs
}

func (s *site) addrs(r role, port int) (addrs []string) {
	for _, m := range s.of(r) {
		addrs = append(addrs, m.at(port))
	}
	return addrs
}

func (s *site) natsURLs() string {
	return "nats://" + strings.Join(s.addrs(server, natsPort), ",nats://")
}

// startAll starts the machines of some roles and waits until they are well.
func (s *site) startAll(roles ...role) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, r := range roles {
			for _, m := range s.of(r) {
				if err := m.start(); err != nil {
					return err
				}
			}
		}
		for _, r := range roles {
			for _, m := range s.of(r) {
				if err := m.process.Wait(ctx, m.well); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// createKey issues the API key of all clients, on the last line of the command's
// standard output. The cluster takes a moment until it keeps anything.
func (s *site) createKey(ctx context.Context) (err error) {
	for end := time.Now().Add(child.ReadyTimeout); ; {
		cmd := child.Command(ctx, filepath.Join(s.bin, "ommer"), "keys", "create", "--name", "chaos", "--nats", s.natsURLs())
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err == nil {
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			s.key = lines[len(lines)-1]
			return nil
		}
		if time.Now().After(end) || !pause(ctx, time.Second) {
			return fmt.Errorf("ommer keys create: %w: %s", err, stderr.Bytes())
		}
	}
}

// replicate has all servers keep the keys, as an operator of a cluster does.
func (s *site) replicate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, child.ReadyTimeout)
	defer cancel()
	nc, err := nats.Connect(s.natsURLs())
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, "KV_ommer_keys")
	if err != nil {
		return err
	}
	cfg := stream.CachedInfo().Config
	cfg.Replicas = servers
	_, err = js.UpdateStream(ctx, cfg)
	return err
}

// linkedTo are the servers that a machine has a connection to, by what they say.
func (s *site) linkedTo(ctx context.Context, m *machine) (linked []*machine) {
	for _, srv := range s.of(server) {
		if slices.Contains(s.clientsOf(ctx, srv), m) {
			linked = append(linked, srv)
		}
	}
	return linked
}

// clientsOf are the machines that have a connection to a server, by what it says: none
// if it is down.
func (s *site) clientsOf(ctx context.Context, srv *machine) (linked []*machine) {
	var said struct {
		Connections []struct {
			IP string `json:"ip"`
		} `json:"connections"`
	}
	body, err := srv.get(ctx, "/connz")
	if err != nil || json.Unmarshal(body, &said) != nil {
		return nil
	}
	for _, m := range s.machines {
		for _, c := range said.Connections {
			if c.IP == m.addr {
				linked = append(linked, m)
				break
			}
		}
	}
	return linked
}

// well says whether everything is: nil if so.
func (s *site) well(ctx context.Context) error {
	errs := make([]error, len(s.machines))
	var wg sync.WaitGroup
	for i, m := range s.machines {
		wg.Go(func() { errs[i] = m.well(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// crashed says which programs have ended by themselves.
func (s *site) crashed() error {
	var errs []error
	for _, m := range s.machines {
		errs = append(errs, m.crashed())
	}
	return errors.Join(errs...)
}

// String says what there is.
func (s *site) String() string {
	return fmt.Sprintf("%d servers, %d upstreams, %d workers, %d edges", servers, upstreams, workers, edges)
}

// stop ends every program, and leaves the rest to the kernel: see enterSandbox.
func (s *site) stop() error {
	errs := make([]error, len(s.machines))
	for _, r := range []role{edge, worker, upstream, server} {
		var wg sync.WaitGroup
		for i, m := range s.machines {
			if m.role == r {
				wg.Go(func() { errs[i] = m.stop() })
			}
		}
		wg.Wait()
	}
	return errors.Join(errs...)
}

// keepLogs copies the logs of all programs to a folder.
func (s *site) keepLogs(to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(s.dir, "*.log"))
	if err != nil {
		return err
	}
	for _, name := range logs {
		err = errors.Join(err, copyFile(name, to))
	}
	return err
}

// copyFile copies what one process wrote.
func copyFile(from, dir string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(from)), b, 0o600)
}
