package transcript_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/goleak"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/deploy/transcript"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/edge/certs"
	"github.com/ommer/ommer/edge/daemon"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
	"github.com/ommer/ommer/schema/uncle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a registry of keys and a table of answers. Its edges are edge.Nodes in
// this process.
type world struct {
	chain    transcript.Chain
	registry *keys.Registry
	url      string // of the bus, which only keys travel on
	key      string
	tls      *tls.Config
	roots    *x509.CertPool

	source *source
}

func newWorld(t *testing.T) *world {
	t.Helper()
	chain, err := transcript.Sample()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{chain: chain, roots: x509.NewCertPool(), source: newSource(chain)}
	server, err := embedded.New(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	w.url = server.URL()
	if w.registry, err = keys.Open(t.Context(), keys.RegistryConfig{Link: w.link(t)}); err != nil {
		t.Fatal(err)
	}
	w.key, _ = w.NewKey(t, "good", nil)
	pair, err := certs.SelfSigned(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store, err := certs.New(certs.Config{Pairs: []certs.Pair{pair}})
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(pair.Cert)
	if err != nil {
		t.Fatal(err)
	}
	w.tls = store.TLS()
	w.roots.AppendCertsFromPEM(pem)
	return w
}

// link connects to the bus until t ends.
func (w *world) link(t *testing.T) *bus.Link {
	t.Helper()
	l, err := bus.Dial(bus.LinkConfig{Name: "transcript", URLs: []string{w.url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func (w *world) Name() string { return transcript.InProcess }

func (w *world) Source() transcript.Source { return w.source }

func (w *world) NewKey(t *testing.T, name string, flags []string) (key string, revoke func()) {
	t.Helper()
	var settings keys.Settings
	parse(t, &settings, flags)
	key, record, err := w.registry.Create(t.Context(), name, settings)
	if err != nil {
		t.Fatal(err)
	}
	return key, func() {
		if _, err := w.registry.Revoke(t.Context(), record.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// parse reads flags as the programs do.
func parse(t *testing.T, into any, flags []string) {
	t.Helper()
	parser, err := kong.New(into)
	if err == nil {
		_, err = parser.Parse(flags)
	}
	if err != nil {
		t.Fatalf("flags %q: %v", flags, err)
	}
}

func (w *world) Edge(t *testing.T, flags []string) *transcript.Edge {
	t.Helper()
	var o daemon.Options
	parse(t, &o, append([]string{"--http=127.0.0.1:0"}, flags...))
	metrics := prometheus.NewRegistry()
	var running atomic.Pointer[edge.Node] // the directory is there first
	dir, err := keys.NewDirectory(keys.DirectoryConfig{
		Link: w.link(t),
		OnChange: func(*keys.Entry) {
			if n := running.Load(); n != nil {
				n.KeysChanged()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	node, err := edge.New(edge.Config{
		HTTPS: "127.0.0.1:0", HTTP: string(o.HTTP), TLS: w.tls,
		Keys: dir, Network: "here", Resolver: w.source.Fixed, Limits: o.Limits, Timeouts: o.Timeouts,
		Logger: slog.New(slog.DiscardHandler), Registerer: metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	running.Store(node)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		dir.Close()
	})
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for dir.Lookup([]byte(w.key)) == nil {
		<-tick.C // the test's time-out bounds it
	}
	return &transcript.Edge{
		HTTP: node.HTTP().String(), HTTPS: node.HTTPS().String(), Roots: w.roots, Key: w.key, Stop: stop,
		Metrics: func() (string, error) {
			r := httptest.NewRecorder()
			promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}).ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if r.Code != http.StatusOK {
				return "", fmt.Errorf("status %d: %s", r.Code, r.Body)
			}
			return r.Body.String(), nil
		},
	}
}

// source is the table, and what was changed of it.
type source struct {
	*schematest.Fixed
	chain   transcript.Chain
	results map[schema.Question]string
	changed []schema.Question
}

// newSource has the answer to every question that is not null.
func newSource(chain transcript.Chain) *source {
	s := &source{chain: chain, results: map[schema.Question]string{}}
	know := func(block schema.Selector, b *types.Block) {
		for i, h := range b.Uncles() {
			s.results[schema.Question{Block: block, Index: uint64(i)}] = string(uncle.Append(nil, h))
		}
	}
	for n, b := range chain.Blocks {
		know(schema.Number(uint64(n)), b)
		know(schema.BlockHash(schema.Hash(b.Hash())), b)
	}
	know(schema.BlockHash(schema.Hash(chain.Side.Hash())), chain.Side)
	know(schema.Tagged(schema.Earliest), chain.Blocks[0])
	know(schema.Tagged(schema.Latest), chain.Blocks[len(chain.Blocks)-1])
	know(schema.Tagged(schema.Safe), chain.Blocks[chain.Finalized])
	know(schema.Tagged(schema.Finalized), chain.Blocks[chain.Finalized])
	s.Fixed = schematest.NewFixed(s.results)
	return s
}

func (s *source) set(q schema.Question, a schema.Answer) {
	s.changed = append(s.changed, q)
	s.Set(q, a)
}

// Waiting counts blocks: workers ask once for all who want one.
func (s *source) Waiting() int {
	var blocks []schema.Selector
	for _, q := range s.Fixed.Waiting() {
		if !slices.Contains(blocks, q.Block) {
			blocks = append(blocks, q.Block)
		}
	}
	return len(blocks)
}

// codes are what workers answer when the node fails.
var codes = map[transcript.Fault]schema.Code{
	transcript.Pruned:      schema.Pruned,
	transcript.Bodiless:    schema.Pruned,
	transcript.Overloaded:  schema.Overloaded,
	transcript.Unreachable: schema.Unavailable,
	transcript.Untrue:      schema.Internal,
}

func (s *source) Fail(f transcript.Fault, block uint64) {
	a := schema.Answer{Err: &schema.Error{Code: codes[f], Detail: "what operators are told"}}
	for i := range uint64(2) {
		s.set(schema.Question{Block: schema.Number(block), Index: i}, a)
		s.set(schema.Question{Block: schema.BlockHash(schema.Hash(s.chain.Blocks[block].Hash())), Index: i}, a)
	}
}

func (s *source) Unfinalize() {
	for _, tag := range []schema.Tag{schema.Safe, schema.Finalized} {
		for i := range uint64(2) {
			s.set(schema.Question{Block: schema.Tagged(tag), Index: i}, schema.Answer{Result: schema.Null})
		}
	}
}

func (s *source) Reset() {
	s.Release()
	for _, q := range s.changed {
		a := schema.Answer{Result: schema.Null}
		if result, ok := s.results[q]; ok {
			a.Result = []byte(result)
		}
		s.Set(q, a)
	}
	s.changed = nil
}
