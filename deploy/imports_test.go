package deploy

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ommer/ommer/"

// Who may import what, directly. A trailing slash means the package and all below.
var mayNot = []struct {
	pkg    string   // the importer
	except []string // importers below pkg that may
	target string
	only   []string // packages below target that may be imported all the same
	reason string
}{
	{pkg: "schema/", target: "bus/", reason: "schema is the bottom: vocabulary, no I/O"},
	{pkg: "schema/", target: "edge/", reason: "schema is the bottom: vocabulary, no I/O"},
	{pkg: "schema/", target: "workers/", reason: "schema is the bottom: vocabulary, no I/O"},
	{pkg: "schema/", target: "deploy/", reason: "schema is the bottom: vocabulary, no I/O"},
	{pkg: "bus/", target: "edge/", reason: "the bus serves edges and workers and knows neither"},
	{pkg: "bus/", target: "workers/", reason: "the bus serves edges and workers and knows neither"},
	{pkg: "bus/", target: "deploy/", reason: "imports go one way"},
	{pkg: "bus/actor/", target: "bus/", only: []string{"bus/actor/"}, reason: "the actor runtime imports nothing of ours"},
	{pkg: "bus/actor/", target: "schema/", reason: "the actor runtime imports nothing of ours"},
	{pkg: "bus/process/", target: "bus/", only: []string{"bus/process/"}, reason: "a process knows nothing of what it runs"},
	{pkg: "edge/", target: "workers/", reason: "edges and workers meet on the bus only"},
	{pkg: "edge/", target: "deploy/", reason: "imports go one way"},
	{pkg: "workers/", target: "edge/", reason: "edges and workers meet on the bus only"},
	{pkg: "workers/", target: "deploy/", reason: "imports go one way"},
	{pkg: "edge/", except: []string{"edge/nio/"}, target: "github.com/lesismal/nbio/", reason: "its traps are handled in edge/nio, once"},
	{pkg: "workers/", target: "github.com/lesismal/nbio/", reason: "its traps are handled in edge/nio, once"},
	{pkg: "edge/", target: "github.com/nats-io/", reason: "bus is the only importer of nats.go"},
	{pkg: "workers/", target: "github.com/nats-io/", reason: "bus is the only importer of nats.go"},
	{pkg: "deploy/e2e/", except: []string{"deploy/e2e/cmd/"}, target: "edge/", reason: "black-box tests speak to processes; cmd has those that only tests need"},
	{pkg: "deploy/e2e/", except: []string{"deploy/e2e/cmd/"}, target: "bus/", reason: "black-box tests speak to processes; cmd has those that only tests need"},
	{pkg: "deploy/e2e/", target: "workers/", only: []string{"workers/archive/", "workers/upstream/upstreamtest/"}, reason: "black-box tests speak to processes; the archive reads the truth, and a node that fails as it is told stands behind them"},
	{pkg: "deploy/child/", target: "github.com/ommer/", reason: "it starts programs and knows nothing of them"},
	{pkg: "deploy/hostile/", target: "edge/", only: []string{"edge/certs/"}, reason: "attackers and honest clients speak to processes, by no code of the edge's"},
	{pkg: "deploy/chaos/", target: "edge/", reason: "what is broken are processes; nothing in the judge may break with them"},
	{pkg: "deploy/chaos/", target: "bus/", reason: "what is broken are processes; nothing in the judge may break with them"},
	{pkg: "deploy/chaos/", target: "workers/", reason: "answers are compared with the chain, by no code that renders or serves them"},
	{pkg: "deploy/chaos/", target: "schema/", reason: "answers are compared with the chain, by no code that renders or serves them"},
	{pkg: "deploy/cmd/", target: "deploy/testchain/", reason: "it links go-ethereum's core; the generated chain is carried as a file"},
	{pkg: "edge/http1/", target: "net/http", reason: "the parser is held against net/http; it cannot be it"},
	{pkg: "edge/", target: "schema/uncle/", reason: "it links go-ethereum's KZG set-up into the internet-facing process"},
}

// What a binary must not link.
var mustNotLink = []struct{ binary, target, reason string }{
	{"edge/cmd/ommer-edge", "github.com/nats-io/nats-server/", "the internet-facing process carries no broker"},
	{"edge/cmd/ommer-edge", "github.com/ethereum/go-ethereum/", "the internet-facing process decodes no block"},
	{"edge/cmd/ommer-edge", "github.com/lesismal/nbio/nbhttp/", "its parsers are not safe"},
	{"edge/cmd/ommer-edge", "github.com/lesismal/llib/", "its TLS is a fork without security fixes"},
	{"workers/cmd/ommer-worker", "github.com/nats-io/nats-server/", "a worker joins a bus, it does not run one"},
	{"workers/cmd/ommer-worker", "github.com/lesismal/nbio/", "a worker terminates no clients"},
}

type pkg struct {
	ImportPath  string
	Imports     []string
	TestImports []string
	Deps        []string
}

func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags=e2e", "-json=ImportPath,Imports,TestImports,Deps", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string]pkg{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// under says whether path is the package of a rule or below it.
func under(path, rule string) bool {
	if !strings.Contains(strings.SplitN(rule, "/", 2)[0], ".") && rule != "net/http" {
		rule = module + rule
	}
	return path == strings.TrimSuffix(rule, "/") || strings.HasSuffix(rule, "/") && strings.HasPrefix(path, rule)
}

func anyUnder(path string, rules []string) bool {
	return slices.ContainsFunc(rules, func(r string) bool { return under(path, r) })
}

func TestImports(t *testing.T) {
	all := list(t)
	for _, r := range mayNot {
		matched := false
		for path, p := range all {
			if !under(path, r.pkg) {
				continue
			}
			matched = true
			if anyUnder(path, r.except) {
				continue
			}
			imports := p.Imports
			if strings.HasPrefix(path, module+"deploy/e2e") {
				imports = append(imports, p.TestImports...) // all of it is tests
			}
			for _, imported := range imports {
				if under(imported, r.target) && !anyUnder(imported, r.only) {
					t.Errorf("%s imports %s: %s", path, imported, r.reason)
				}
			}
		}
		if !matched {
			t.Errorf("the rule about %s matches no package", r.pkg)
		}
	}
}

func TestLinks(t *testing.T) {
	all := list(t)
	for _, r := range mustNotLink {
		p, ok := all[module+r.binary]
		if !ok {
			t.Errorf("there is no %s", r.binary)
		}
		for _, dep := range p.Deps {
			if under(dep, r.target) {
				t.Errorf("%s links %s: %s", r.binary, dep, r.reason)
				break
			}
		}
	}
}
