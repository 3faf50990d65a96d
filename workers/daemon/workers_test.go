package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/bus/networks"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/network"
	"github.com/ommer/ommer/workers/upstream"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// lines is a log that can be read.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) have(all ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		found := 0
		for _, s := range all {
			if strings.Contains(line, s) {
				found++
			}
		}
		if found == len(all) {
			return true
		}
	}
	return false
}

// A process serves several networks, each by its own nodes, under one name. A node of
// another chain than its network's is asked for no block, and the log says which it is.
func TestWorkers(t *testing.T) {
	server, err := embedded.New(embedded.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	one := upstreamtest.Start(t, upstreamtest.Generate(12, 4, "one"))
	two := upstreamtest.Start(t, upstreamtest.Generate(12, 4, "two"))
	two.SetChainID(11155111)
	mainnet := upstreamtest.Start(t, upstreamtest.Generate(12, 4, "main"))
	mainnet.SetChainID(1)
	mainnet.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "eth_getBlock") || strings.Contains(string(body), "eth_getUncle") {
			t.Errorf("a node of another chain is asked: %s", body)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		node.ServeHTTP(w, r)
	})
	logged := &lines{}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(logged, t.Output()), nil))
	admin, err := process.NewAdmin("127.0.0.1:0", log)
	if err != nil {
		t.Fatal(err)
	}
	all, err := NewWorkers(Config{
		Name: "w", Bus: bus.Flags{NATS: []bus.URL{bus.URL(server.URL())}}, Log: log, Admin: admin,
	}, []networks.Network{
		{Network: network.Named("private"), Upstreams: []string{one.URL}, Entry: "networks[0]"},
		{Network: network.Named("sepolia"), Upstreams: []string{mainnet.URL, two.URL}, Entry: "networks[1]"},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- admin.Run(ctx) }()
	go func() { ended <- all.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	for _, name := range []string{"private", "sepolia"} {
		until(t, name+" to be ready", func() bool { status, _ := get(t, admin, "/readyz?network="+name); return status == http.StatusOK })
	}

	link, err := bus.Dial(bus.Flags{NATS: []bus.URL{bus.URL(server.URL())}}.Link("asker", slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	q := schema.Question{Block: schema.Number(11)} // has two uncles
	answers := map[string]string{}
	for _, name := range []string{"private", "sepolia"} {
		c, err := bus.NewClient(bus.ClientConfig{Links: []*bus.Link{link}, Network: name})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		until(t, name+" to answer", func() bool {
			a := ask(t, c, q)
			answers[name] = string(a.Result)
			return a.Err == nil && len(a.Result) > 4
		})
	}
	if answers["private"] == answers["sepolia"] {
		t.Errorf("both networks have the same uncle: %s", answers["private"])
	}
	if !logged.have("upstream", "network=sepolia", "chain 1, the chain here is 11155111") {
		t.Error("the log does not say which node is of another chain")
	}
	if logged.have("another worker has the name") {
		t.Error("the workers of a process take each other for strangers")
	}
	for _, page := range []string{"/actors", "/actors?network=sepolia"} {
		if status, body := get(t, admin, page); status != http.StatusOK || !strings.Contains(body, "shard-0") {
			t.Errorf("%s: %d %s", page, status, body)
		}
	}
	_, metrics := get(t, admin, "/metrics")
	for _, name := range []string{"private", "sepolia"} {
		if line := `ommer_workers_lookups_total{network="` + name + `",source="miss"} `; !strings.Contains(metrics, line) {
			t.Errorf("no %s in /metrics", line)
		}
	}
}

// What is known of a network goes where it is used.
func TestNetworkOfWorker(t *testing.T) {
	admin, err := process.NewAdmin("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	node := upstreamtest.Start(t, upstreamtest.Generate(3, 3, "x")) // of chain 1337
	all, err := NewWorkers(Config{
		Options: Options{Upstream: []upstream.URL{upstream.URL(node.URL)}}, Name: "w",
		Bus: bus.Flags{NATS: []bus.URL{"nats://127.0.0.1:1"}}, Log: slog.New(slog.DiscardHandler), Admin: admin,
	}, []networks.Network{{Network: network.Named("mainnet")}}, false)
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- all.Run(running) }()
	defer func() {
		stop()
		<-ended // with an error: there is no bus to leave
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, _, err := all[0].nodes.Block(ctx, schema.Number(1)); !errors.Is(err, upstream.ErrUntrue) || !strings.Contains(err.Error(), "serves chain 1337, the chain here is 1") {
		t.Errorf("a block of another chain: %v", err)
	}
}

// A mistake in the second network gives up the first.
func TestSecondOfWorkersFails(t *testing.T) {
	server, err := embedded.New(embedded.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	admin, err := process.NewAdmin("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewWorkers(Config{
		Name: "w", Bus: bus.Flags{NATS: []bus.URL{bus.URL(server.URL())}}, Log: slog.New(slog.DiscardHandler), Admin: admin,
	}, []networks.Network{
		{Network: network.Named("private"), Upstreams: []string{"http://127.0.0.1:1"}, Entry: "networks[0]"},
		{Network: network.Named("sepolia"), Archive: []string{"/nowhere"}, Entry: "networks[1]"},
	}, false)
	if err == nil || !strings.Contains(err.Error(), "networks[1].archive") {
		t.Errorf("err = %v", err)
	} // what is left of the first would fail the package
}

func TestMistakesOfNetworks(t *testing.T) {
	node, sepolia := []upstream.URL{"http://127.0.0.1:1"}, network.Named("sepolia")
	for _, tt := range []struct {
		name    string
		options Options
		network networks.Network
		want    []string
	}{
		{"nothing to answer from, by flags", Options{}, networks.Network{Network: sepolia}, []string{"--upstream", "--archive"}},
		{"nothing to answer from", Options{}, networks.Network{Network: sepolia, Entry: "networks[0]"}, []string{"--networks: networks[0]: sepolia needs upstreams or archive"}},
		{"both ways", Options{Upstream: node}, networks.Network{Network: sepolia, Entry: "networks[0]"}, []string{"--upstream", "networks[0]"}},
		{"a bad URL", Options{}, networks.Network{Network: sepolia, Upstreams: []string{"http://x", "s3cret"}, Entry: "networks[0]"}, []string{"networks[0].upstreams[1]: the scheme"}},
		{"no such archive", Options{}, networks.Network{Network: sepolia, Archive: []string{"/nowhere"}, Entry: "networks[0]"}, []string{"networks[0].archive: ", "/nowhere"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			admin, err := process.NewAdmin("", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			_, err = NewWorkers(Config{
				Options: tt.options, Name: "w", Bus: bus.Flags{NATS: []bus.URL{"nats://127.0.0.1:1"}}, Log: slog.New(slog.DiscardHandler), Admin: admin,
			}, []networks.Network{tt.network}, false)
			var usage process.Usage
			if !errors.As(err, &usage) {
				t.Fatalf("err = %v, want a Usage", err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not mention %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q repeats the URL", err)
			}
		})
	}
}
