//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestActorsPage: every process with actors shows them to its operator.
func TestActorsPage(t *testing.T) {
	f := newFleet(t)
	f.startNATS()
	w := f.startWorker(startNode(t, "").url)
	waitReady(t, w.process, w.admin)
	one := serve(t, t.TempDir())
	stdout, _ := one.output()
	addr := regexp.MustCompile(`(?m)^ *admin +http://(.*)/readyz$`).FindStringSubmatch(stdout)
	if addr == nil {
		t.Fatalf("no admin address is printed:\n%s", stdout)
	}
	one.try(t)
	for _, p := range []struct {
		name string
		admin
		asked bool // for an uncle
	}{{"ommer-worker", w.admin, false}, {"ommer serve", admin(addr[1]), true}} {
		t.Run(p.name, func(t *testing.T) {
			status, body, err := p.get("/actors")
			if err != nil || status != http.StatusOK {
				t.Fatalf("%d %s, %v", status, body, err)
			}
			var systems []struct {
				Name, State string
				Actors      []struct {
					Name, State string
					Received    uint64
				}
			}
			if err := json.Unmarshal([]byte(body), &systems); err != nil || len(systems) != 2 {
				t.Fatalf("%v: %s", err, body)
			}
			system, nodes := systems[0], systems[1]
			_, tree, err := p.get("/actors?format=text")
			if err != nil {
				t.Fatal(err)
			}
			if system.Name != "workers" || system.State != "running" || !strings.HasPrefix(tree, "workers: running, ") {
				t.Errorf("%s\n%s", body, tree)
			}
			if nodes.Name != "upstreams" || len(nodes.Actors) != 1 || p.asked && nodes.Actors[0].Received == 0 || !strings.Contains(tree, "\nupstreams: running, ") {
				t.Errorf("the nodes: %s\n%s", body, tree)
			}
			received := uint64(0)
			for i, a := range system.Actors {
				received += a.Received
				if a.Name != fmt.Sprint("shard-", i) || !strings.Contains(tree, "─ "+a.Name+" ") {
					t.Errorf("actor %d: %s\n%s", i, body, tree)
				}
			}
			if len(system.Actors) == 0 || p.asked && received == 0 {
				t.Error("no shard, or none that has received a message:", body)
			}
		})
	}
	if err := errors.Join(stopped(w.process), stopped(one.process)); err != nil {
		t.Error(err)
	}
}

// stopped stops a process and says if it did not like that.
func stopped(p *process) error {
	if code := p.stop(); code != 0 {
		return fmt.Errorf("%s: exit code %d", p.name, code)
	}
	return nil
}
