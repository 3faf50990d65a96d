//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// configFolder has the operator's NATS files. They are run as they are.
const configFolder = "../nats"

// siteUsers are the users that users.conf knows.
var siteUsers = []string{"edge-1", "edge-2", "worker-1", "worker-2", "monitor", "operator", "leaf-1", "system"}

// site is NATS servers run from the operator's files, with certificates and users, and
// the edges and workers on them.
type site struct {
	*fleet
	dir string   // certificates and nkeys
	env []string // the public nkeys
}

// natsServer is one of a site's servers.
type natsServer struct {
	*process
	site                            *site
	name, store                     string
	clients, routes, leaves, region string // addresses: for clients, other servers, leaf nodes, other regions
	monitor                         admin
	file                            string // that it was started with
	env                             []string
}

func newSite(tb testing.TB) *site {
	tb.Helper()
	s := &site{fleet: newFleet(tb), dir: tb.TempDir()}
	for _, name := range siteUsers {
		s.certificate("client", name)
		user, err := nkeys.CreateUser()
		if err != nil {
			tb.Fatal(err)
		}
		seed, err := user.Seed()
		if err != nil {
			tb.Fatal(err)
		}
		public, err := user.PublicKey()
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(s.file(name+".nk"), seed, 0o600); err != nil {
			tb.Fatal(err)
		}
		s.env = append(s.env, "NKEY_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+public)
	}
	return s
}

func (s *site) file(name string) string { return filepath.Join(s.dir, name) }

// certificate runs the operator's script.
func (s *site) certificate(args ...string) {
	s.tb.Helper()
	out, err := exec.CommandContext(s.tb.Context(), filepath.Join(configFolder, "certs.sh"), append([]string{s.dir}, args...)...).CombinedOutput()
	if err != nil {
		s.tb.Fatalf("certs.sh %v: %v\n%s", args, err, out)
	}
}

// server prepares a server: a certificate, addresses and a folder.
func (s *site) server(name string) *natsServer {
	s.tb.Helper()
	s.certificate("server", name, "localhost", "127.0.0.1")
	return &natsServer{
		site: s, name: name, store: s.tb.TempDir(),
		clients: freeAddr(s.tb), routes: freeAddr(s.tb), leaves: freeAddr(s.tb), region: freeAddr(s.tb),
		monitor: admin(freeAddr(s.tb)),
	}
}

// start runs the server from one of the operator's files and waits until it takes
// connections.
func (n *natsServer) start(file string, env ...string) {
	n.site.tb.Helper()
	n.file, n.env = file, env
	n.restart()
}

// restart is start as before, once it has ended.
func (n *natsServer) restart() {
	s := n.site
	s.tb.Helper()
	path, err := filepath.Abs(filepath.Join(configFolder, n.file))
	if err != nil {
		s.tb.Fatal(err)
	}
	n.process = startWith(s.tb, slices.Concat([]string{
		"NATS_NAME=" + n.name, "NATS_LISTEN=" + n.clients, "NATS_MONITOR=" + string(n.monitor), "NATS_STORE=" + n.store,
		"NATS_CERT=" + s.file(n.name+".pem"), "NATS_KEY=" + s.file(n.name+".key"),
		"NATS_SERVERS_CA=" + s.file("servers-ca.pem"), "NATS_CLIENTS_CA=" + s.file("clients-ca.pem"),
		"NATS_ROUTES_LISTEN=" + n.routes, "NATS_LEAVES_LISTEN=" + n.leaves, "NATS_GATEWAYS_LISTEN=" + n.region,
	}, s.env, n.env), n.name, "nats-server", "--config", path)
	eventually(s.tb, soon, n.name+" to listen", func() error {
		if !n.running() {
			s.tb.Fatalf("%s ended, exit code %d", n.name, n.code)
		}
		c, err := net.Dial("tcp", n.clients)
		if err == nil {
			_ = c.Close() // it was only to see
		}
		return err
	})
}

// sees waits until the server is well, and a page of its monitor names all of these.
func (n *natsServer) sees(page string, names ...string) {
	n.site.tb.Helper()
	eventually(n.site.tb, soon, n.name+" to be one of them", func() error {
		status, body, err := n.monitor.get("/healthz")
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("/healthz: %d %s %w", status, body, err)
		}
		_, body, err = n.monitor.get(page)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !strings.Contains(body, `"`+name+`"`) {
				return fmt.Errorf("%s does not name %s", page, name)
			}
		}
		return nil
	})
}

// cluster starts servers as one cluster, each from the given file.
func (s *site) cluster(name, file string, servers []*natsServer, env ...string) {
	s.tb.Helper()
	env = append(slices.Clip(env), "NATS_CLUSTER="+name)
	for i := range 3 {
		env = append(env, fmt.Sprintf("NATS_ROUTE_%d=tls://%s", i+1, servers[i%len(servers)].routes))
	}
	for _, n := range servers {
		n.start(file, env...)
	}
}

// seesCluster waits until the server is connected to all others of its cluster.
func (n *natsServer) seesCluster(servers []*natsServer) {
	n.site.tb.Helper()
	var others []string
	for _, o := range servers {
		if o != n {
			others = append(others, o.name)
		}
	}
	n.sees("/routez", others...)
}

// login are the flags with which a user connects.
func (s *site) login(user string, servers ...*natsServer) []string {
	urls := make([]string, len(servers))
	for i, n := range servers {
		urls[i] = "tls://" + n.clients
	}
	return []string{
		"--nats", strings.Join(urls, ","), "--nats-nkey", s.file(user + ".nk"), "--nats-ca", s.file("servers-ca.pem"),
		"--nats-cert", s.file(user + ".pem"), "--nats-key", s.file(user + ".key"),
	}
}

// startEdge starts an edge as the user of its name and does not wait for it.
func (s *site) startEdge(name string, login []string, args ...string) *edge {
	s.tb.Helper()
	e := &edge{https: freeAddr(s.tb), http: freeAddr(s.tb), admin: admin(freeAddr(s.tb))}
	e.process = start(s.tb, name, "ommer-edge", slices.Concat([]string{
		"--name", name, "--network", network, "--admin", string(e.admin),
		"--https", e.https, "--tls-cert", s.certs.certFile, "--tls-key", s.certs.keyFile, "--http", e.http,
	}, login, args)...)
	s.edges = append(s.edges, e)
	return e
}

// startWorker starts a worker as the user of its name and does not wait for it.
func (s *site) startWorker(name, upstream string, login []string, args ...string) *worker {
	s.tb.Helper()
	w := &worker{admin: admin(freeAddr(s.tb))}
	w.process = start(s.tb, name, "ommer-worker", slices.Concat([]string{
		"--name", name, "--network", network, "--admin", string(w.admin), "--upstream", upstream,
	}, login, args)...)
	s.workers = append(s.workers, w)
	return w
}

// keys runs one of the commands `ommer keys`.
func (s *site) keys(login []string, args ...string) (stdout, stderr string, code int) {
	s.tb.Helper()
	return run(s.tb, "ommer", slices.Concat([]string{"keys"}, args, login)...)
}

// createKey makes a key, as soon as there is somebody to keep it.
func (s *site) createKey(login []string) (key string) {
	s.tb.Helper()
	eventually(s.tb, soon, "a key to be made", func() error {
		stdout, stderr, code := s.keys(login, "create", "--name", "site")
		if code != 0 {
			return errors.New(stderr)
		}
		key = strings.TrimSpace(stdout)
		return nil
	})
	return key
}

// connect opens a connection as a user, with an inbox of its own.
func (s *site) connect(user, inbox string, n *natsServer) *nats.Conn {
	s.tb.Helper()
	sign, err := nats.NkeyOptionFromSeed(s.file(user + ".nk"))
	if err != nil {
		s.tb.Fatal(err)
	}
	nc, err := nats.Connect("tls://"+n.clients, sign, nats.RootCAs(s.file("servers-ca.pem")),
		nats.ClientCert(s.file(user+".pem"), s.file(user+".key")), nats.CustomInboxPrefix(inbox),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // they are looked for
	if err != nil {
		s.tb.Fatalf("connecting as %s: %v", user, err)
	}
	s.tb.Cleanup(nc.Close)
	return nc
}
