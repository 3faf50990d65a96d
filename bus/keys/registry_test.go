package keys_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/bus/keys"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute // a race detector on a slow machine reads 10,000 keys in 20 s

func startServer(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	s, err := embedded.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, name string, urls ...string) *bus.Link {
	t.Helper()
	l, err := bus.Dial(bus.LinkConfig{Name: name, URLs: urls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func open(t *testing.T, l *bus.Link) *keys.Registry {
	t.Helper()
	r, err := keys.Open(t.Context(), keys.RegistryConfig{Link: l})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func directory(t *testing.T, cfg keys.DirectoryConfig) *keys.Directory {
	t.Helper()
	d, err := keys.NewDirectory(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// eventually waits until ok and returns how long that took.
func eventually(t *testing.T, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Since(began) > patience {
			t.Fatalf("not within %v: %s", patience, what)
		}
		<-tick.C
	}
	return time.Since(began)
}

func create(t *testing.T, r *keys.Registry, name string) (string, keys.Record) {
	t.Helper()
	key, rec, err := r.Create(t.Context(), name, keys.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return key, rec
}

func bucketOf(t *testing.T, l *bus.Link) jetstream.KeyValue {
	t.Helper()
	js, err := jetstream.New(l.NATS())
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "ommer_keys")
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

func TestDirectoriesSeeCreationAndRevocation(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	admin := open(t, dial(t, "admin", srv.URL()))
	var ended [2]chan *keys.Entry
	var dirs [2]*keys.Directory
	for i := range dirs {
		ended[i] = make(chan *keys.Entry, 8)
		dirs[i] = directory(t, keys.DirectoryConfig{
			Link:     dial(t, fmt.Sprintf("edge%d", i), srv.URL()),
			OnChange: func(e *keys.Entry) { ended[i] <- e },
		})
		eventually(t, "ready", dirs[i].Ready)
	}
	key, rec := create(t, admin, "acme")
	var held [2]*keys.Entry
	for i, d := range dirs {
		took := eventually(t, "the key is known", func() bool { held[i] = d.Lookup([]byte(key)); return held[i] != nil })
		if took > time.Second {
			t.Errorf("creation took %v", took)
		}
		if held[i].ID() != rec.ID || held[i].Name() != "acme" || held[i].Revoked() {
			t.Errorf("entry %q %q %v", held[i].ID(), held[i].Name(), held[i].Revoked())
		}
	}
	if _, err := admin.Revoke(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	for i, d := range dirs {
		took := eventually(t, "the key is revoked", func() bool { return d.Lookup([]byte(key)) == nil })
		if took > time.Second {
			t.Errorf("revocation took %v", took)
		}
		select {
		case e := <-ended[i]:
			if e != held[i] || !e.Revoked() {
				t.Error("announced another entry")
			}
		case <-time.After(patience):
			t.Fatal("the revocation was not announced")
		}
	}
}

func TestLookupRefuses(t *testing.T) {
	d := directory(t, keys.DirectoryConfig{})
	if _, err := d.AddStatic("dev-key_1.~"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, key string
		found     bool
	}{
		{"static", "dev-key_1.~", true},
		{"empty", "", false},
		{"unknown", keys.New(), false},
		{"prefix of a key", "dev-key_1.", false},
		{"other case", "DEV-key_1.~", false},
		{"too long", "dev-key_1.~" + strings.Repeat("x", 200), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := d.Lookup([]byte(c.key)) != nil; got != c.found {
				t.Errorf("found %v, want %v", got, c.found)
			}
		})
	}
	for _, bad := range []string{"", "short", strings.Repeat("x", 65), "with space", "slash/slash", "ümlautümlaut"} {
		if _, err := d.AddStatic(bad); !errors.Is(err, keys.ErrStatic) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	key := []byte("dev-key_1.~")
	if n := testing.AllocsPerRun(100, func() { d.Lookup(key) }); n != 0 {
		t.Errorf("Lookup allocates %v times", n)
	}
}

func TestRegistryNames(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	r := open(t, dial(t, "admin", srv.URL()))
	_, a := create(t, r, "twin")
	_, b := create(t, r, "twin")
	_, c := create(t, r, "only")
	_, err := r.Revoke(t.Context(), "twin")
	if !errors.Is(err, keys.ErrAmbiguous) || !strings.Contains(err.Error(), a.ID) || !strings.Contains(err.Error(), b.ID) {
		t.Errorf("ambiguous: got %v", err)
	}
	if _, err := r.Revoke(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Get(t.Context(), "twin"); err != nil || got.ID != b.ID {
		t.Errorf("the active one of two: got %v, %v", got.ID, err)
	}
	again, err := r.Revoke(t.Context(), a.ID)
	if err != nil || again.State != keys.Revoked || again.Revoked.IsZero() {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := r.Get(t.Context(), "nobody"); !errors.Is(err, keys.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, _, err := r.Create(t.Context(), "", keys.Settings{}); !errors.Is(err, keys.ErrName) {
		t.Errorf("got %v", err)
	}
	all, err := r.List(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	if got, err := r.Get(t.Context(), c.ID); err != nil || got.Name != "only" {
		t.Errorf("by ID: %+v, %v", got, err)
	}
}

func TestRevokeAgainstAnotherWriter(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	l := dial(t, "admin", srv.URL())
	r := open(t, l)
	_, rec := create(t, r, "x")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := r.Revoke(context.Background(), rec.ID); err != nil || got.State != keys.Revoked {
				t.Errorf("got %v, %v", got.State, err)
			}
		})
	}
	wg.Wait()
}

func TestKeysOutliveTheServer(t *testing.T) {
	dir := t.TempDir()
	srv, err := embedded.New(embedded.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	url := srv.URL()
	addr := strings.TrimPrefix(url, "nats://")
	l := dial(t, "edge", url)
	r := open(t, l)
	key, rec := create(t, r, "before")
	ended := make(chan *keys.Entry, 1)
	d := directory(t, keys.DirectoryConfig{Link: l, OnChange: func(e *keys.Entry) { ended <- e }})
	eventually(t, "known", func() bool { return d.Lookup([]byte(key)) != nil })

	srv.Close()
	eventually(t, "the link is down", func() bool { return !l.Up() })
	if d.Lookup([]byte(key)) == nil || !d.Ready() {
		t.Error("a known key is refused while the bucket is away")
	}
	startServer(t, embedded.Config{Dir: dir, Addr: addr})
	eventually(t, "the link is up", l.Up)
	var after string
	took := eventually(t, "a key made afterwards", func() bool {
		if after == "" {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			after, _, _ = r.Create(ctx, "after", keys.Settings{})
		}
		return after != "" && d.Lookup([]byte(after)) != nil
	})
	if took > 5*time.Second { // the library's own watcher takes three times as long
		t.Errorf("seen %v after the server came back", took)
	}
	if _, err := r.Revoke(t.Context(), rec.ID); err != nil {
		t.Fatal(err)
	}
	if took := eventually(t, "revoked", func() bool { return d.Lookup([]byte(key)) == nil }); took > time.Second {
		t.Errorf("revocation after a restart took %v", took)
	}
	<-ended
}

func TestNotReadyBeforeTheBucketExists(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	l := dial(t, "edge", srv.URL())
	d := directory(t, keys.DirectoryConfig{Link: l})
	eventually(t, "says what is missing", func() bool { return strings.Contains(d.Missing(), "ommer_keys does not exist") })
	if d.Ready() {
		t.Error("ready without a bucket")
	}
	key, _ := create(t, open(t, l), "first")
	eventually(t, "known", func() bool { return d.Lookup([]byte(key)) != nil })
	eventually(t, "ready", d.Ready)
	if got := d.Missing(); got != "" {
		t.Errorf("ready, but missing %q", got)
	}
}

func TestGarbageAndEndsInTheBucket(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	l := dial(t, "edge", srv.URL())
	r := open(t, l)
	kv := bucketOf(t, l)
	put := func(key, value string) {
		t.Helper()
		if _, err := kv.PutString(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	sum := func(key string) string { h := sha256.Sum256([]byte(key)); return hex.EncodeToString(h[:]) }
	put("hello", "world")
	put(strings.Repeat("A", 64), `{}`)
	put(sum("x"), `{"id":"nope"}`)
	deleted, _ := create(t, r, "deleted")
	spoiled, _ := create(t, r, "spoiled")
	purged, _ := create(t, r, "purged")
	kept, _ := create(t, r, "kept")

	reg := prometheus.NewRegistry()
	d := directory(t, keys.DirectoryConfig{Link: l, Registerer: reg})
	eventually(t, "ready", d.Ready)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP ommer_keys_skipped_total Records left out, by reason.
# TYPE ommer_keys_skipped_total counter
ommer_keys_skipped_total{reason="full"} 0
ommer_keys_skipped_total{reason="garbage"} 3
`), "ommer_keys_skipped_total"); err != nil {
		t.Error(err)
	}
	for _, k := range []string{deleted, spoiled, purged, kept} {
		if d.Lookup([]byte(k)) == nil {
			t.Fatal("a good key is refused")
		}
	}
	if err := kv.Delete(t.Context(), sum(deleted)); err != nil {
		t.Fatal(err)
	}
	if err := kv.Purge(t.Context(), sum(purged)); err != nil {
		t.Fatal(err)
	}
	put(sum(spoiled), "spoiled")
	for _, k := range []string{deleted, spoiled, purged} {
		eventually(t, "a key without a record is refused", func() bool { return d.Lookup([]byte(k)) == nil })
	}
	if d.Lookup([]byte(kept)) == nil {
		t.Error("the other key is refused")
	}
}

func TestResyncNoticesWhatNoUpdateTold(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	l := dial(t, "edge", srv.URL())
	old, _ := create(t, open(t, l), "old")
	d := directory(t, keys.DirectoryConfig{Link: l, Resync: 50 * time.Millisecond})
	eventually(t, "known", func() bool { return d.Lookup([]byte(old)) != nil })
	js, err := jetstream.New(l.NATS())
	if err != nil {
		t.Fatal(err)
	}
	// A bucket made anew begins at revision 1 again.
	if err := js.DeleteKeyValue(t.Context(), "ommer_keys"); err != nil {
		t.Fatal(err)
	}
	r := open(t, l)
	fresh, _ := create(t, r, "fresh")
	eventually(t, "the new key is known", func() bool { return d.Lookup([]byte(fresh)) != nil })
	eventually(t, "the old key is gone", func() bool { return d.Lookup([]byte(old)) == nil })
	eventually(t, "and forgotten", func() bool { return d.Len() == 1 })
}

// TestWatchThatDeliversNothing: in a cluster the server that delivers can go while the
// one of the connection stays, and nothing tells of it for many seconds.
func TestWatchThatDeliversNothing(t *testing.T) {
	s := startServer(t, embedded.Config{Dir: t.TempDir()})
	l := dial(t, "operator", s.URL())
	r := open(t, l)
	create(t, r, "first")
	d := directory(t, keys.DirectoryConfig{Link: dial(t, "edge", s.URL())})
	eventually(t, "the directory to be ready", func() bool { return d.Missing() == "" })

	js, err := jetstream.New(l.NATS())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "KV_ommer_keys")
	if err != nil {
		t.Fatal(err)
	}
	names := stream.ConsumerNames(t.Context())
	for name := range names.Name() {
		if err := stream.DeleteConsumer(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := names.Err(); err != nil {
		t.Fatal(err)
	}
	key, _ := create(t, r, "second")
	took := eventually(t, "the key to be known", func() bool { return d.Lookup([]byte(key)) != nil })
	if took > 5*time.Second { // the library's watcher waits for two heartbeats, of five seconds
		t.Errorf("known after %v", took)
	}
}

func TestManyKeysAndTheLimit(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	l := dial(t, "edge", srv.URL())
	open(t, l)
	const n = 10_000
	js, err := jetstream.New(l.NATS(), jetstream.WithPublishAsyncMaxPending(n)) // no matter how slow the server is
	if err != nil {
		t.Fatal(err)
	}
	some := make([]string, n)
	for i := range some {
		some[i] = keys.New()
		h := sha256.Sum256([]byte(some[i]))
		id := hex.EncodeToString(h[:])
		rec := fmt.Sprintf(`{"id":%q,"name":"n%d","state":"active"}`, id[:16], i)
		if _, err := js.PublishAsync("$KV.ommer_keys."+id, []byte(rec)); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	d := directory(t, keys.DirectoryConfig{Link: l})
	t.Logf("%d keys read in %v", n, eventually(t, "ready", d.Ready))
	for i, k := range some {
		if d.Lookup([]byte(k)) == nil {
			t.Fatalf("key %d is not known", i)
		}
	}
	var log bytes.Buffer
	small := directory(t, keys.DirectoryConfig{Link: l, Max: 100, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	eventually(t, "ready", small.Ready)
	if small.Len() != 100 {
		t.Errorf("%d keys kept, want 100", small.Len())
	}
	small.Close()
	if got := strings.Count(log.String(), "more API keys than fit"); got != 1 {
		t.Errorf("said %d times", got)
	}
}

func BenchmarkLookup(b *testing.B) {
	d, err := keys.NewDirectory(keys.DirectoryConfig{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	key := []byte(keys.New())
	if _, err := d.AddStatic(string(key)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if d.Lookup(key) == nil {
			b.Fatal("not found")
		}
	}
}
