//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// networkSite is a file with three networks and their nodes: two chains of their own, and
// main net, which has only a node of another chain.
type networkSite struct {
	file   string
	chains map[string]upstreamtest.Chain // by network
	wrong  string                        // address of the node of another chain
}

// networkHosts are Host headers and the network that they are for.
var networkHosts = []struct{ host, network string }{
	{"localhost", "private"}, {"private.example", "private"}, {"", "private"},
	{"classic.example", "classic"}, {"CLASSIC.example.:8443", "classic"},
}

func startNetworks(t *testing.T) *networkSite {
	t.Helper()
	s := &networkSite{file: filepath.Join(t.TempDir(), "networks.yaml"), chains: map[string]upstreamtest.Chain{
		"private": upstreamtest.Generate(12, 4, "private"), "classic": upstreamtest.Generate(12, 4, "classic"),
	}}
	private, classic := upstreamtest.Start(t, s.chains["private"]), upstreamtest.Start(t, s.chains["classic"])
	classic.SetChainID(61)
	wrong, err := url.Parse(private.URL) // the log has its host
	if err != nil {
		t.Fatal(err)
	}
	s.wrong = wrong.Host
	text := fmt.Sprintf(`
networks:
  - {name: private, chain_id: 1337, hosts: [private.example], upstreams: ["%[1]s"]}
  - {name: classic, hosts: [classic.example], upstreams: ["%[1]s", "%[2]s"], finality: 3}
  - {name: mainnet, hosts: [mainnet.example], upstreams: ["%[1]s"]}
`, private.URL, classic.URL)
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// question is for a block that both chains have, with other uncles.
const networkQuestion = `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0xb","0x1"]}`

// want says whether an answer is what the chain of a network has.
func (s *networkSite) want(raw []byte, network string) error {
	r, err := result(raw, 1)
	if err != nil {
		return err
	}
	h, err := header(r)
	if err != nil {
		return err
	}
	if want := s.chains[network][11].Uncles()[1].Hash(); h.Hash() != want {
		return fmt.Errorf("the uncle %v, want %v of %s", h.Hash(), want, network)
	}
	return nil
}

// post asks with a Host header, whatever the address.
func post(t *testing.T, client *http.Client, url, host string) (status int, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(networkQuestion))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Host = host
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

// check asks by every host over HTTPS, which is asked for localhost, and over HTTP and
// both kinds of WebSocket.
func (s *networkSite) check(t *testing.T, https, plain, key string, config *tls.Config) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for _, h := range networkHosts {
		for _, url := range []string{"https://" + https, "http://" + plain} {
			if status, body := post(t, client, url+"/v3/"+key, h.host); status != http.StatusOK {
				t.Errorf("%s, Host %q: %d %s", url, h.host, status, body)
			} else if err := s.want(body, h.network); err != nil {
				t.Errorf("%s, Host %q: %v", url, h.host, err)
			}
		}
		for _, url := range []string{"wss://" + https, "ws://" + plain} {
			if err := s.checkWS(t.Context(), url+"/ws/v3/"+key, h.host, h.network, client); err != nil {
				t.Errorf("%s, Host %q: %v", url, h.host, err)
			}
		}
	}
	// Main net has workers that have no node: it fails, and nothing is made up.
	_, body := post(t, client, "https://"+https+"/v3/"+key, "mainnet.example")
	var failed *rpcError
	if _, err := result(body, 1); !errors.As(err, &failed) {
		t.Errorf("main net, which has no node: %s", body)
	}
}

func (s *networkSite) checkWS(ctx context.Context, url, host, network string, client *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	c, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client, Host: host})
	if err != nil {
		return err
	}
	defer c.CloseNow()
	answer, err := (&wsCaller{c}).call(ctx, []byte(networkQuestion))
	if err != nil {
		return err
	}
	return s.want(answer, network)
}

// states says what readiness and the log have to say of the networks.
func (s *networkSite) states(t *testing.T, a admin, checks map[string]string) {
	t.Helper()
	eventually(t, soon, "the state of each network", func() error {
		for query, want := range map[string]int{"": 200, "?network=private": 200, "?network=classic": 200, "?network=mainnet": 503, "?network=x": 404} {
			if status, body, err := a.get("/readyz" + query); err != nil || status != want {
				return fmt.Errorf("/readyz%s: %d %s, %w; want %d", query, status, body, err, want)
			}
		}
		_, body, err := a.get("/readyz")
		for check, want := range checks {
			if !regexp.MustCompile(`"` + regexp.QuoteMeta(check) + `":"` + want).MatchString(body) {
				return fmt.Errorf("%s is not %s: %s, %w", check, want, body, err)
			}
		}
		return nil
	})
}

// saysWrong wants the log to name the node of another chain, for each network that has it.
func (s *networkSite) saysWrong(t *testing.T, p *process) {
	t.Helper()
	eventually(t, soon, "the log to name the wrong node", func() error {
		_, log := p.output()
		for network, chain := range map[string]string{"classic": "61", "mainnet": "1"} {
			if !regexp.MustCompile(`network=` + network + ` upstream=http://` + regexp.QuoteMeta(s.wrong) + ` .*chain 1337, the chain here is ` + chain + `\b`).MatchString(log) {
				return fmt.Errorf("no line about %s and chain %s in\n%s", network, chain, log)
			}
		}
		return nil
	})
}

func TestNetworksInOneProcess(t *testing.T) {
	s := startNetworks(t)
	data := t.TempDir()
	p := serve(t, data, "--config", s.file)
	stdout, _ := p.output()
	address := func(scheme string) string {
		return regexp.MustCompile(`(?m) ` + scheme + `://([^/\s]+)/`).FindStringSubmatch(stdout)[1]
	}
	a := admin(regexp.MustCompile(`admin +http://([^/]+)/`).FindStringSubmatch(stdout)[1])
	s.states(t, a, map[string]string{"private.lookup": "ok", "classic.upstream": "ok", "mainnet.upstream": "[^o]", "mainnet.lookup": "[^o]", "keys": "ok"})
	s.saysWrong(t, p.process)
	for _, line := range []string{"private, for any other Host", "classic, for a Host header of classic.example"} {
		if !strings.Contains(stdout, line) {
			t.Errorf("no %q in %s", line, stdout)
		}
	}

	pem, err := os.ReadFile(filepath.Join(data, "cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	config.RootCAs.AppendCertsFromPEM(pem)
	s.check(t, address("https"), address("http"), p.key, config)

	nats := regexp.MustCompile(`nats://[^\s]+`).FindString(stdout)
	out, stderr, code := run(t, "ommer", "keys", "create", "--name", "classic", "--networks", "classic", "--nats", nats)
	if code != 0 {
		t.Fatal(stderr)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	url := "http://" + address("http") + "/v3/" + lines[len(lines)-1]
	eventually(t, soon, "the key of one network to be known", func() error {
		if status, body := post(t, http.DefaultClient, url, "classic.example"); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	if status, body := post(t, http.DefaultClient, url, "private.example"); status != http.StatusForbidden || !bytes.Contains(body, []byte("rejected by the API key's settings")) {
		t.Errorf("the key is let in on another network: %d %s", status, body)
	}
	http.DefaultClient.CloseIdleConnections()
	p.leave(t)
}

func TestNetworksInSeveralProcesses(t *testing.T) {
	s := startNetworks(t)
	f := newFleet(t)
	f.startNATS()
	key := f.createKey("all")
	e := &edge{https: freeAddr(t), http: freeAddr(t), admin: admin(freeAddr(t))}
	e.process = start(t, "edge", "ommer-edge", "--config", s.file, "--name", "edge", "--nats", f.natsURL(), "--admin", string(e.admin),
		"--https", e.https, "--tls-cert", f.certs.certFile, "--tls-key", f.certs.keyFile, "--http", e.http)
	worker := func(name string, args ...string) *worker {
		w := &worker{admin: admin(freeAddr(t))}
		w.process = start(t, name, "ommer-worker", append([]string{"--config", s.file, "--name", name, "--nats", f.natsURL(), "--admin", string(w.admin)}, args...)...)
		return w
	}
	// One network at a time: what a worker is not for it leaves to others.
	first := worker("first", "--network", "private")
	waitReady(t, e.process, e.admin)
	for query, want := range map[string]int{"": 200, "?network=private": 200, "?network=classic": 503} {
		if status, body, err := e.get("/readyz" + query); err != nil || status != want {
			t.Errorf("the edge with one network: /readyz%s: %d %s, %v; want %d", query, status, body, err, want)
		}
	}
	if _, body, _ := first.get("/readyz"); !strings.Contains(body, `"upstream":"ok"`) {
		t.Errorf("/readyz of a worker for one network: %s", body)
	}
	all := worker("all")
	s.saysWrong(t, all.process)
	s.states(t, all.admin, map[string]string{"private.upstream": "ok", "classic.worker_bus": "ok", "mainnet.upstream": "[^o]"})
	s.states(t, e.admin, map[string]string{"classic.lookup": "ok", "nats": "ok", "mainnet.lookup": "[^o]"})
	config := f.tls().Clone()
	config.ServerName = "localhost"
	s.check(t, e.https, e.http, key, config)
	if n := all.mustMetric(t, `ommer_workers_lookups_total{network="classic",source="miss"}`); n == 0 {
		t.Error("nothing was looked up on classic")
	}
	for _, p := range []*process{first.process, all.process, e.process} {
		if code := p.stop(); code != 0 {
			t.Errorf("%s: exit code %d after SIGTERM, want 0", p.name, code)
		}
	}
	if _, log := all.output(); strings.Contains(log, "another worker has the name") {
		t.Error("the workers of a process take each other for strangers")
	}
}
