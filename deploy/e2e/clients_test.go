//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scriptTime bounds the tests of one client, which take seconds.
const scriptTime = time.Minute

// service is what the tests of a client are told, as JSON.
type service struct {
	Edges    map[string]reach `json:"edges"`
	Key      string           `json:"key"`      // good on all edges
	Commands string           `json:"commands"` // the program ommer
	NATS     string           `json:"nats"`     // for its --nats
	CA       string           `json:"ca"`       // also in NODE_EXTRA_CA_CERTS

	Uncles  []lookup `json:"uncles"`  // all are there
	Nulls   []lookup `json:"nulls"`   // none of them is
	Latest  []string `json:"latest"`  // the hashes of the uncles of the newest block
	Dropped lookup   `json:"dropped"` // is not there any more on the edge "pruned"
}

// reach is where an edge is, without a key.
type reach struct {
	HTTPS string `json:"https"`
	WSS   string `json:"wss"`
	Admin string `json:"admin"`
}

// lookup is a question in both forms, and the hash of the uncle.
type lookup struct {
	Number string `json:"number"`
	Block  string `json:"block"`
	Index  string `json:"index"`
	Hash   string `json:"hash,omitempty"`
}

func (q question) lookup() lookup {
	l := lookup{Number: fmt.Sprintf("%#x", q.block.number), Block: q.block.hash.Hex(), Index: fmt.Sprintf("%#x", q.index)}
	if want, ok := q.want(); ok {
		l.Hash = want.Hex()
	}
	return l
}

// TestClients runs the clients that people use, each with the tests that the folder
// clients has for it.
func TestClients(t *testing.T) {
	dir := installed(t)
	_, with, without := sepolia(t)
	env := describe(t, startStates(t, with[0]), with, without)
	tests, err := filepath.Glob(filepath.Join(dir, "*.test.mjs"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	clients, checks, failures := 0, 0, 0
	for _, path := range tests {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".test.mjs"), func(t *testing.T) {
			passed, failed := runTests(t, path, env)
			clients, checks, failures = clients+1, checks+passed+failed, failures+failed
		})
	}
	t.Logf("clients: %d, checks: %d, failures: %d", clients, checks, failures)
}

// installed returns the folder of the clients.
func installed(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("clients")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatalf("%v; `make clients` installs the clients", err)
	}
	return dir
}

// describe writes what the tests of a client are told to a file and returns the
// environment that says where it is.
func describe(t *testing.T, s *states, with, without []block) []string {
	t.Helper()
	told := service{
		Edges: map[string]reach{}, Key: s.key, Commands: program(t, "ommer"), NATS: s.natsURL(), CA: s.certs.authorityFile,
		Dropped: question{block: &with[0]}.lookup(),
	}
	for name, e := range map[string]*edge{"main": s.main, "pruned": s.pruned, "lost": s.lost, "slow": s.slow} {
		told.Edges[name] = reach{HTTPS: "https://" + e.named(t), WSS: "wss://" + e.named(t), Admin: "http://" + string(e.admin)}
	}
	for _, q := range append(unclesOf(with[:20], false), unclesOf(with[len(with)-20:], false)...) {
		told.Uncles = append(told.Uncles, q.lookup())
	}
	head := newest(with, without)
	for _, u := range head.uncles {
		told.Latest = append(told.Latest, u.Hex())
	}
	for _, b := range []block{with[0], without[0], unknown(head)} {
		told.Nulls = append(told.Nulls, question{block: &b, index: len(b.uncles)}.lookup())
	}
	text, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "service.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return append(environment(t), "OMMER_SERVICE="+path, "NODE_EXTRA_CA_CERTS="+s.certs.authorityFile)
}

// runTests runs a file of tests and returns how many passed and failed.
func runTests(t *testing.T, path string, env []string) (passed, failed int) {
	t.Helper()
	out, err := runNode(t, env, "--test-reporter=spec", path)
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	passed, failed = count(out, "pass"), count(out, "fail")
	if passed == 0 {
		t.Errorf("%s: no test passed", filepath.Base(path))
	}
	return passed, failed
}

// count reads one of the figures at the end of a report of node's test runner.
func count(report []byte, what string) int {
	m := regexp.MustCompile(`(?m)^. ` + what + ` (\d+)$`).FindSubmatch(report)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(m[1])) // digits
	return n
}

// runNode runs a script and returns all that it writes.
func runNode(t *testing.T, env []string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Env, cmd.SysProcAttr, cmd.WaitDelay = env, childAttr(), time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%s has not ended after %v", args[len(args)-1], scriptTime)
	case errors.Is(err, exec.ErrNotFound):
		t.Fatalf("%v; the clients need Node.js 18", err)
	}
	return out, err
}

// TestClientsAsk runs the examples of README.md as they stand there, with what
// `ommer serve` leaves in the home of who runs it.
func TestClientsAsk(t *testing.T) {
	dir := installed(t)
	path, with, _ := sepolia(t)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	s := serve(t, data, "--blocks", path)
	env := append(environment(t), "URL="+regexp.MustCompile(`https://\S+`).FindString(s.curl),
		"NODE_EXTRA_CA_CERTS="+filepath.Join(data, "cert.pem"))
	examples, err := filepath.Glob(filepath.Join(dir, "ask", "*.mjs"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples in %s: %v", dir, err)
	}
	for _, path := range examples {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			shown := "    " + strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n    ") + "\n"
			if !bytes.Contains(readme, []byte(shown)) {
				t.Errorf("README.md does not have it:\n%s", shown)
			}
			out, err := runNode(t, env, path)
			if want := with[0].uncles[0].Hex(); err != nil || !bytes.Contains(out, []byte(want)) {
				t.Errorf("%v; no %s in: %s", err, want, out)
			}
		})
	}
}
