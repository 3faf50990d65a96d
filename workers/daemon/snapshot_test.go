package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/network"
	"github.com/ommer/ommer/workers"
	"github.com/ommer/ommer/workers/snapshot"
	"github.com/ommer/ommer/workers/upstream"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// keeps is a worker with a snapshot. Its end is told by stop.
type keeps struct {
	*Daemon
	admin *process.Admin
	stop  func()
}

// startKeeping runs a worker with a snapshot until stop, or until the test ends.
func startKeeping(t *testing.T, nats, node string, o Options) *keeps {
	t.Helper()
	o.Upstream = []upstream.URL{upstream.URL(node)}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	admin, err := process.NewAdmin("127.0.0.1:0", log)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(Config{Options: o, Name: "w", Network: network.Named("test"), Bus: bus.Flags{NATS: []bus.URL{bus.URL(nats)}}, Log: log, Admin: admin})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- admin.Run(ctx) }()
	go func() { ended <- d.Run(ctx) }()
	k := &keeps{Daemon: d, admin: admin}
	k.stop = func() {
		if cancel == nil {
			return
		}
		cancel()
		cancel = nil
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(func() { k.stop() })
	return k
}

// metric waits for a line of /metrics.
func (k *keeps) metric(t *testing.T, line string) {
	t.Helper()
	until(t, line, func() bool {
		_, metrics := get(t, k.admin, "/metrics")
		return strings.Contains(metrics, "\n"+line+"\n")
	})
}

func (k *keeps) ready(t *testing.T) {
	t.Helper()
	until(t, "the worker to be ready", func() bool { status, _ := get(t, k.admin, "/readyz"); return status == http.StatusOK })
}

// ask asks for blocks of a chain by their hashes.
func (k *keeps) ask(t *testing.T, c upstreamtest.Chain) (blocks []schema.Selector) {
	t.Helper()
	for _, b := range c {
		q := schema.Question{Block: schema.BlockHash(schema.Hash(b.Hash()))}
		answers := make(chan schema.Answer, 1)
		k.pool.Resolve(q, time.Now().Add(patience), schema.ReceiverFunc(func(a schema.Answer) { answers <- a }))
		if a := <-answers; a.Err != nil {
			t.Fatal(a.Err)
		}
		blocks = append(blocks, q.Block)
	}
	return blocks
}

func same(a, b []schema.Selector) bool {
	order := func(a, b schema.Selector) int { return strings.Compare(a.String(), b.String()) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order))
}

func TestSnapshot(t *testing.T) {
	server, err := embedded.New(embedded.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	nats := server.URL()
	chain := upstreamtest.Generate(12, 12, "daemon")
	node := upstreamtest.Start(t, chain)
	path := filepath.Join(t.TempDir(), "hot")
	file := func(t *testing.T) []schema.Selector {
		t.Helper()
		blocks, err := snapshot.Read(path, upstreamtest.ChainID)
		if err != nil {
			t.Fatal(err)
		}
		return blocks
	}

	t.Run("written now and then", func(t *testing.T) {
		w := startKeeping(t, nats, node.URL, Options{Snapshot: path, SnapshotInterval: 10 * time.Millisecond})
		w.ready(t)
		blocks := w.ask(t, chain[:5])
		until(t, "the snapshot", func() bool { b, err := snapshot.Read(path, upstreamtest.ChainID); return err == nil && same(b, blocks) })
	})
	t.Run("written at the end", func(t *testing.T) {
		w := startKeeping(t, nats, node.URL, Options{Snapshot: path})
		w.metric(t, `ommer_workers_cache_entries{network="test"} 5`)
		blocks := w.ask(t, chain)
		w.stop()
		if got := file(t); !same(got, blocks) {
			t.Errorf("%d blocks are written, want %d", len(got), len(blocks))
		}
	})
	t.Run("read", func(t *testing.T) {
		w := startKeeping(t, nats, node.URL, Options{Snapshot: path})
		w.metric(t, fmt.Sprintf(`ommer_workers_warm_lookups_total{network="test",source="miss"} %d`, len(chain)))
		w.metric(t, fmt.Sprintf("ommer_workers_cache_entries{network=\"test\"} %d", len(chain)))
		w.ask(t, chain)
		w.metric(t, fmt.Sprintf(`ommer_workers_lookups_total{network="test",source="hit"} %d`, len(chain)))
		w.metric(t, `ommer_workers_lookups_total{network="test",source="miss"} 0`)
		w.metric(t, `ommer_workers_snapshot_failures_total{network="test"} 0`)
	})
	t.Run("left alone by a worker without a node", func(t *testing.T) {
		w := startKeeping(t, nats, "http://127.0.0.1:1", Options{Snapshot: path, SnapshotInterval: time.Millisecond})
		w.metric(t, `ommer_workers_snapshot_failures_total{network="test"} 0`)
		w.stop()
		if got := file(t); len(got) != len(chain) {
			t.Errorf("%d blocks are left, want %d", len(got), len(chain))
		}
	})
	t.Run("what is not yet asked for is kept", func(t *testing.T) {
		held := make(chan struct{})
		release := sync.OnceFunc(func() { close(held) })
		defer release()
		slow := upstreamtest.Start(t, chain)
		slow.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
			body, err := io.ReadAll(r.Body)
			if err != nil || bytes.Contains(body, []byte("eth_getUncle")) {
				<-held
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			node.ServeHTTP(w, r)
		})
		w := startKeeping(t, nats, slow.URL, Options{Snapshot: path})
		until(t, "the questions", func() bool { return w.pool.Figures().Fetches > 0 })
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		stopped := make(chan struct{})
		go func() { w.stop(); close(stopped) }()
		until(t, "the snapshot", func() bool {
			b, err := snapshot.Read(path, upstreamtest.ChainID)
			return err == nil && len(b) == len(chain)
		})
		release()
		<-stopped
	})
	for name, damage := range map[string]func() error{
		"altered": func() error { return flip(path) },
		"another chain's": func() error {
			return snapshot.Write(path, snapshot.Snapshot{Chain: upstreamtest.ChainID + 1, Blocks: []schema.Selector{schema.Number(1)}})
		},
	} {
		t.Run(name+" is refused and replaced", func(t *testing.T) {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			w := startKeeping(t, nats, node.URL, Options{Snapshot: path})
			w.metric(t, `ommer_workers_snapshot_failures_total{network="test"} 1`)
			w.ready(t)
			blocks := w.ask(t, chain[:3])
			w.stop()
			if got := file(t); !same(got, blocks) {
				t.Errorf("%d blocks are written, want %d", len(got), len(blocks))
			}
		})
	}
}

// A file that is no snapshot is somebody's, and stops the start.
func TestSnapshotOfAnotherKind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(Config{Options: Options{Snapshot: path}})
	if _, ok := errors.AsType[process.Usage](err); !ok || !strings.Contains(err.Error(), "--snapshot") {
		t.Errorf("got %v, want a mistake of --snapshot", err)
	}
}

// archiveAlone is a source that answers and still misses something.
type archiveAlone struct{}

func (archiveAlone) Block(context.Context, schema.Selector) (upstream.Block, bool, error) {
	return upstream.Block{}, true, nil
}
func (archiveAlone) Ready() error { return upstream.ErrUnreachable }

// TestSnapshotNotLookedAt has a worker whose archive answers, and that waits for its nodes.
// It must not replace what it has not read.
func TestSnapshotNotLookedAt(t *testing.T) {
	pool, err := workers.New(workers.Config{Source: archiveAlone{}})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Stop(context.Background())
	admin, err := process.NewAdmin("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hot")
	want := []schema.Selector{schema.Number(1), schema.Number(2)}
	if err := snapshot.Write(path, snapshot.Snapshot{Chain: 1, Blocks: want}); err != nil {
		t.Fatal(err)
	}
	k, err := newKeeper(Config{Options: Options{Snapshot: path}, Log: slog.New(slog.DiscardHandler)}, admin.Registry, pool,
		func() (uint64, bool) { return 1, true })
	if err != nil {
		t.Fatal(err)
	}
	w := &keeps{Daemon: &Daemon{pool: pool}}
	w.ask(t, upstreamtest.Generate(3, 3, "archive"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.run(ctx)
	k.write()
	if got, err := snapshot.Read(path, 1); err != nil || !slices.Equal(got, want) {
		t.Errorf("the file has %v, %v; want %v", got, err, want)
	}
}

func flip(path string) error {
	b, err := os.ReadFile(path)
	b[len(b)/2] ^= 1
	return errors.Join(err, os.WriteFile(path, b, 0o600))
}

func TestSnapshotOptions(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"a file to be", Options{Snapshot: filepath.Join(dir, "hot")}, ""},
		{"a folder", Options{Snapshot: dir}, "--snapshot"},
		{"no folder", Options{Snapshot: filepath.Join(dir, "none", "hot")}, "--snapshot"},
		{"a negative interval", Options{SnapshotInterval: -1}, "--snapshot-interval"},
	} {
		err := tt.o.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want+":") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
