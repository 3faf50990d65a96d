//go:build e2e

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// noNATS is where no NATS server is, so that the one of the machine is left alone.
var noNATS = []string{"--nats", "nats://127.0.0.1:1"}

// TestMistakes makes the mistakes that everybody makes. Each is said in a line that
// names the field and what it takes.
func TestMistakes(t *testing.T) {
	certs := newCertificates(t)
	file := filepath.Join(t.TempDir(), "ommer.yaml")
	if err := os.WriteFile(file, []byte("nats: nats://127.0.0.1:4222\nhtpps: \":8443\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "networks.yaml")
	if err := os.WriteFile(list, []byte("networks: [{name: mainnet}, {name: sepolia, hosts: [x], upstreams: [\"s3cret\"]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing.pem")
	edge := append([]string{"ommer-edge", "--admin", "127.0.0.1:0", "--http", "127.0.0.1:0"}, noNATS...)
	worker := append([]string{"ommer-worker", "--admin", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"}, noNATS...)
	serve := []string{"ommer", "serve", "--data", t.TempDir(), "--https", "127.0.0.1:0", "--http", "127.0.0.1:0",
		"--admin", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0"}

	for _, c := range []struct {
		name    string
		command []string
		args    []string
		want    []string // words of the message
	}{
		{"edge: unknown flag", edge, []string{"--htpps", ":8443"}, []string{"--htpps", "--http"}},
		{"worker: unknown flag", worker, []string{"--upstreams", "http://127.0.0.1:1"}, []string{"--upstreams", "--upstream"}},
		{"serve: unknown flag", serve, []string{"--block", "x"}, []string{"--block"}},
		{"edge: nothing to listen on", []string{"ommer-edge"}, nil, []string{"--https", "--http"}},
		{"worker: no upstream", []string{"ommer-worker"}, nil, []string{"--upstream", "--archive"}},
		{"edge: address without a port", edge, []string{"--http", "localhost"}, []string{"--http", "localhost", "port"}},
		{"edge: bad port", edge, []string{"--https", "127.0.0.1:eighty", "--tls-cert", certs.certFile, "--tls-key", certs.keyFile}, []string{"--https", "eighty", "port"}},
		{"edge: bad admin address", edge, []string{"--admin", "9091"}, []string{"--admin", "9091", "port"}},
		{"serve: bad address of NATS", serve, []string{"--nats-listen", "nowhere"}, []string{"--nats-listen", "nowhere"}},
		{"edge: missing certificate", edge, []string{"--https", "127.0.0.1:0", "--tls-cert", missing, "--tls-key", certs.keyFile}, []string{"--tls-cert", missing}},
		{"edge: certificate without key", edge, []string{"--https", "127.0.0.1:0", "--tls-cert", certs.certFile}, []string{"--tls-cert", "--tls-key"}},
		{"edge: two certificates and one key", edge, []string{"--https", "127.0.0.1:0", "--tls-cert", certs.certFile + "," + certs.certFile, "--tls-key", certs.keyFile}, []string{"--tls-cert", "--tls-key", "2 and 1"}},
		{"edge: the second certificate is missing", edge, []string{"--https", "127.0.0.1:0", "--tls-cert", certs.certFile + "," + missing, "--tls-key", certs.keyFile + "," + certs.keyFile}, []string{"--tls-cert", missing}},
		{"serve: missing blocks", serve, []string{"--blocks", missing}, []string{"--blocks", missing}},
		{"edge: bad URL of NATS", edge, []string{"--nats", "http://127.0.0.1:4222"}, []string{"--nats", "nats, tls"}},
		{"worker: bad URL of an upstream", worker, []string{"--upstream", "ftp://127.0.0.1"}, []string{"--upstream", "http"}},
		{"edge: bad duration", edge, []string{"--timeout-lookup", "10"}, []string{"--timeout-lookup", "duration"}},
		{"edge: bad number", edge, []string{"--limit-batch", "many"}, []string{"--limit-batch", "int"}},
		{"edge: unknown key in the file", edge, []string{"--config", file}, []string{file, "htpps", "https"}},
		{"edge: mistake in the list of networks", edge, []string{"--networks", "[{name: a}, {name: b, hosts: ['b.example:1']}]"}, []string{"networks[1].hosts[0]", "port"}},
		{"edge: network that is not in the list", edge, []string{"--config", list, "--network", "classic"}, []string{"--network", "classic", "mainnet, sepolia"}},
		{"worker: network without a node", []string{"ommer-worker", "--config", list}, noNATS, []string{"networks[0]", "upstreams", "archive"}},
		{"worker: bad upstream in the list", []string{"ommer-worker", "--config", list, "--network", "sepolia"}, noNATS, []string{"networks[1].upstreams[0]", "http"}},
		{"worker: upstream beside the list", worker, []string{"--config", list}, []string{"--upstream", "networks[0]"}},
		{"serve: blocks beside the list", serve, []string{"--config", list, "--blocks", list}, []string{"--blocks", "--networks"}},
		{"serve: blocks of another chain", serve, []string{"--network", "mainnet"}, []string{"--network", "mainnet is chain 1", "chain 1337"}},
		{"worker: bad name", worker, []string{"--name", "a.b"}, []string{"--name", "letters"}},
		{"serve: bad key", serve, []string{"--dev-key", "short"}, []string{"--dev-key", "8 to 64"}},
		{"worker: missing archive", worker, []string{"--archive", missing}, []string{"--archive", missing}},
		{"worker: archive that is none", worker, []string{"--archive", file}, []string{"--archive", file, "too short"}},
		{"keys: no name", []string{"ommer", "keys", "create"}, nil, []string{"--name"}},
		{"keys: bad rate", []string{"ommer", "keys", "create", "--name", "x"}, []string{"--rate", "many"}, []string{"--rate", "many"}},
		{"keys: burst alone", []string{"ommer", "keys", "create", "--name", "x"}, []string{"--burst", "5"}, []string{"--burst", "needs a rate"}},
		{"keys: origin with a path", []string{"ommer", "keys", "create", "--name", "x"}, []string{"--origins", "https://a.example/"}, []string{"--origins", "write https://a.example\n"}},
		{"keys: a rate of nothing", []string{"ommer", "keys", "create", "--name", "x"}, []string{"--rate", "0"}, []string{"--rate", "revoke"}},
		{"keys: unknown method", []string{"ommer", "keys", "create", "--name", "x"}, []string{"--methods", "eth_call"}, []string{"--methods", "eth_call", "eth_getUncleByBlockHashAndIndex"}},
		{"keys: nothing to set", []string{"ommer", "keys", "set", "x"}, nil, []string{"--rate", "--origins"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := run(t, c.command[0], append(c.command[1:len(c.command):len(c.command)], c.args...)...)
			if code != 2 {
				t.Errorf("exit code %d, want 2; %s", code, stderr)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("no %q in: %s", w, stderr)
				}
			}
			if stdout != "" {
				t.Errorf("on the standard output: %s", stdout)
			}
		})
	}
}

// TestPortInUse takes a port first. That is no mistake in what was typed.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	certs := newCertificates(t)
	serve := []string{"serve", "--data", t.TempDir(), "--https", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0"}

	for _, c := range []struct {
		name, binary, flag string
		args               []string
	}{
		{"edge: HTTP", "ommer-edge", "--http", append([]string{"--admin", "127.0.0.1:0"}, noNATS...)},
		{"edge: HTTPS", "ommer-edge", "--https", append([]string{"--admin", "127.0.0.1:0", "--tls-cert", certs.certFile, "--tls-key", certs.keyFile}, noNATS...)},
		{"edge: admin", "ommer-edge", "--admin", append([]string{"--http", "127.0.0.1:0"}, noNATS...)},
		{"worker: admin", "ommer-worker", "--admin", append([]string{"--upstream", "http://127.0.0.1:1"}, noNATS...)},
		{"serve: HTTP", "ommer", "--http", serve},
		{"serve: NATS", "ommer", "--nats-listen", serve},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, stderr, code := run(t, c.binary, append(c.args[:len(c.args):len(c.args)], c.flag, addr)...)
			if code != 1 {
				t.Errorf("exit code %d, want 1; %s", code, stderr)
			}
			for _, w := range []string{addr, "in use"} {
				if !strings.Contains(stderr, w) {
					t.Errorf("no %q in: %s", w, stderr)
				}
			}
		})
	}
}
