package daemon

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/network"
	"github.com/ommer/ommer/workers/upstream"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// startWorker runs a worker between a NATS server and a node until the test ends.
func startWorker(t *testing.T) (d *Daemon, nats string, admin *process.Admin) {
	t.Helper()
	server, err := embedded.New(embedded.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	node := upstreamtest.Start(t, upstreamtest.Generate(12, 12, "daemon"))
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	if admin, err = process.NewAdmin("127.0.0.1:0", log); err != nil {
		t.Fatal(err)
	}
	d, err = New(Config{
		Options: Options{Upstream: []upstream.URL{upstream.URL(node.URL)}}, Name: "w", Network: network.Named("test"),
		Bus: bus.Flags{NATS: []bus.URL{bus.URL(server.URL())}}, Log: log, Admin: admin,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- admin.Run(ctx) }()
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return d, server.URL(), admin
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

func get(t *testing.T, admin *process.Admin, path string) (status int, body string) {
	t.Helper()
	resp, err := client.Get("http://" + admin.Addr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// until asks again and again until it is so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// ask asks over the bus, as an edge does.
func ask(t *testing.T, c *bus.Client, q schema.Question) schema.Answer {
	answers := make(chan schema.Answer, 1)
	c.Resolve(q, time.Now().Add(patience), schema.ReceiverFunc(func(a schema.Answer) { answers <- a }))
	return <-answers
}

// TestActorsPage: a shard that panics is seen on the admin listener, in what the
// page and the metrics say, and the worker goes on.
func TestActorsPage(t *testing.T) {
	d, nats, admin := startWorker(t)
	until(t, "the worker to be ready", func() bool { status, _ := get(t, admin, "/readyz"); return status == http.StatusOK })
	shards := func() (all []actor.Info) {
		status, body := get(t, admin, "/actors")
		var systems []actor.SystemInfo
		if err := json.Unmarshal([]byte(body), &systems); err != nil || status != http.StatusOK || len(systems) != 2 {
			t.Fatalf("/actors: %d %s, %v", status, body, err)
		}
		i, nodes := systems[0], systems[1]
		if nodes.Name != "upstreams" || len(nodes.Actors) != 1 {
			t.Fatalf("/actors: %s", body)
		}
		if i.Name != "workers" || i.State != "running" || i.Runners < 1 || len(i.Actors) < 1 {
			t.Fatalf("/actors: %s", body)
		}
		return i.Actors
	}
	for _, a := range shards() {
		if !strings.HasPrefix(a.Name, "shard-") || a.State != "idle" || a.Crashes != 0 || a.LastFailure != "" || a.MailboxCap == 0 {
			t.Errorf("before anything has happened: %+v", a)
		}
	}

	// A Receiver is called by the shard, in its Receive.
	const block = 5
	q := schema.Question{Block: schema.Number(block)}
	d.pool.Resolve(q, time.Now().Add(patience), schema.ReceiverFunc(func(schema.Answer) { panic("a receiver's\nmistake") }))
	var crashed actor.Info
	until(t, "the crash and the restart to be seen", func() bool {
		for _, a := range shards() {
			if a.Restarts > 0 {
				crashed = a
			}
		}
		return crashed.Restarts > 0
	})
	if crashed.Crashes != 1 || crashed.Restarts != 1 || crashed.DeadLetters.Panic != 1 ||
		crashed.LastFailure != "actor: panic: a receiver's mistake" || time.Since(crashed.LastFailureAt) > patience {
		t.Errorf("after the crash: %+v", crashed)
	}
	_, tree := get(t, admin, "/actors?format=text")
	if !strings.HasPrefix(tree, "workers: running, ") || !strings.Contains(tree, "─ "+crashed.Name+" ") || !strings.Contains(tree, crashed.LastFailure+"\n") {
		t.Errorf("as text:\n%s", tree)
	}
	_, metrics := get(t, admin, "/metrics")
	for _, name := range []string{"crashes_total", "restarts_total"} {
		if line := `ommer_actor_` + name + `{actor="` + crashed.Name + `",network="test",system="workers"} 1`; !strings.Contains(metrics, line) {
			t.Errorf("no %s in /metrics", line)
		}
	}

	link, err := bus.Dial(bus.Flags{NATS: []bus.URL{bus.URL(nats)}}.Link("asker", slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	c, err := bus.NewClient(bus.ClientConfig{Links: []*bus.Link{link}, Network: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	until(t, "the shard to answer over the bus", func() bool {
		a := ask(t, c, q)
		return a.Err == nil && len(a.Result) > 4
	})
}
