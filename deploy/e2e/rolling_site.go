//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
)

// linksEach is how many connections to the bus an edge has, and a worker.
const linksEach = 2

// holds counts the server's connections by the process that they are of.
func (n *natsServer) holds() (map[string]int, error) {
	_, body, err := n.monitor.get("/connz")
	if err != nil {
		return nil, err
	}
	var page struct {
		Connections []struct {
			Name string `json:"name"`
		} `json:"connections"`
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		return nil, err
	}
	names := map[string]int{}
	for _, c := range page.Connections {
		names[c.Name]++
	}
	return names, nil
}

// mustHold is holds where it has to be known.
func (n *natsServer) mustHold(tb testing.TB) map[string]int {
	tb.Helper()
	held, err := n.holds()
	if err != nil {
		tb.Fatal(err)
	}
	return held
}

// whole waits until the servers are one cluster and each edge and worker that runs has
// its links on different ones of them, as it is to be before the next one goes.
func (s *site) whole(servers []*natsServer) {
	s.tb.Helper()
	for _, n := range servers {
		n.seesCluster(servers)
	}
	eventually(s.tb, soon, "links to be on different servers", func() error {
		links := map[string]int{}
		for _, n := range servers {
			held, err := n.holds()
			if err != nil {
				return err
			}
			for name, count := range held {
				if count > 1 {
					return fmt.Errorf("%s has %d connections of %s", n.name, count, name)
				}
				links[name]++
			}
		}
		for _, e := range s.edges {
			if e.running() && links[e.name] < linksEach {
				return fmt.Errorf("%s has %d links", e.name, links[e.name])
			}
		}
		for _, w := range s.workers {
			if w.running() && links[w.name] < linksEach {
				return fmt.Errorf("%s has %d links", w.name, links[w.name])
			}
		}
		return nil
	})
}

// revive starts an edge again where it was.
func (e *edge) revive() {
	e.process = e.again()
	waitReady(e.tb, e.process, e.admin)
}

// successor starts an edge at the same addresses, beside this one.
func (e *edge) successor() *edge {
	next := &edge{https: e.https, http: e.http, admin: admin(freeAddr(e.tb))}
	next.process = e.again("--admin", string(next.admin))
	waitReady(next.tb, next.process, next.admin)
	return next
}

// revive starts a worker again under its name.
func (w *worker) revive() {
	w.process = w.again()
	waitReady(w.tb, w.process, w.admin)
}

// at is where the edge serves, with TLS or without.
func (e *edge) at(secure bool) string {
	if secure {
		return e.https
	}
	return e.http
}
