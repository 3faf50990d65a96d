//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestHungNATS stops two servers of a cluster of three one after the other, as a machine
// does that hangs: connections stay open and nothing comes. A worker that has links to
// them goes on being found, and its readiness stays.
func TestHungNATS(t *testing.T) {
	var clients, routes []string
	for range 3 {
		clients, routes = append(clients, freeAddr(t)), append(routes, freeAddr(t))
	}
	var servers []*process
	for i := range clients {
		host, port, err := net.SplitHostPort(clients[i])
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("nats-%d", i)
		servers = append(servers, start(t, name, "nats-server", "--addr", host, "--port", port, "--name", name,
			"--cluster_name", "c", "--cluster", "nats://"+routes[i], "--routes", "nats://"+strings.Join(routes, ",nats://")))
		t.Cleanup(func() { servers[i].signal(syscall.SIGCONT) }) // before it is ended
	}
	nc, err := nats.Connect(clients[2], nats.RetryOnFailedConnect(true), nats.ReconnectWait(pollEvery), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	f := newFleet(t)
	f.natsAddr = clients[0] + ",nats://" + clients[1]
	w := f.startWorker(startNode(t, "").url)

	subject := "ommer.w.worker-0.v1." + network + ".eth_getUncleByBlockNumberAndIndex"
	ask := func() error {
		m, err := nc.Request(subject, []byte(`["0x2a6a4","0x0"]`), time.Second)
		if err == nil && !bytes.Contains(m.Data, []byte(`"result"`)) {
			err = errors.New(string(m.Data))
		}
		return err
	}
	eventually(t, soon, "the worker to be found", ask)
	for _, s := range servers[:2] {
		s.signal(syscall.SIGSTOP)
		began, slowest, lost := time.Now(), time.Duration(0), 0
		for time.Since(began) < soon/2 {
			asked := time.Now()
			if err := ask(); err != nil {
				lost++
				slowest = time.Since(began)
			}
			if rest := pollEvery - time.Since(asked); rest > 0 {
				<-time.After(rest)
			}
		}
		t.Logf("%s: %d questions got no answer in a second, the last of them %v after it was stopped", s.name, lost, slowest.Round(time.Millisecond))
		if slowest > soon/3 {
			t.Errorf("%s: the worker was not found again within %v", s.name, soon/3)
		}
		if !w.running() {
			t.Fatal("the worker has ended")
		}
		s.signal(syscall.SIGCONT)
		eventually(t, soon, "the worker to be found after it", ask)
	}
}
