package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// Nodes and gateways refuse batches in several ways, all of them or those that are too
// large. Every block is had all the same, and larger batches are not tried again.
func TestBatchesThatAreRefused(t *testing.T) {
	invalid := func(text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":%q}}`, "%s", text)
	}
	for _, tt := range []struct {
		name   string
		most   int // calls in a batch; 0: none is taken
		status int
		body   string // with the id of the first call
	}{
		{"go-ethereum", 50, 200, "[" + invalid("batch too large") + "]"},
		{"an object", 30, 200, invalid("too many calls")},
		{"status 413", 12, 413, "too large %s"},
		{"status 400", 12, 400, "too many %s"},
		{"status 500", 3, 500, invalid("too many calls")},
		{"another code", 10, 200, `[{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"exceeded the batch limit of 10"}}]`},
		{"three calls at most", 3, 200, "[" + invalid("batch too large") + "]"},
		{"no batches, an object", 0, 200, invalid("batches are not supported")},
		{"no batches, a list", 0, 200, "[" + invalid("batch not supported") + "]"},
		{"no batches, a status", 0, 413, "no batches %s"},
		{"no batches, another status", 0, 400, "no batches %s"},
		{"no batches, an error within", 0, 500, invalid("no batches")},
		{"no batches, an empty one", 0, 200, "[]%.0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := upstreamtest.Start(t, testChain())
			refused := 0
			node.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
				var body bytes.Buffer
				_, _ = body.ReadFrom(r.Body)
				var calls []struct {
					ID json.RawMessage `json:"id"`
				}
				if json.Unmarshal(body.Bytes(), &calls) == nil && len(calls) > tt.most {
					refused++
					w.WriteHeader(tt.status)
					_, _ = fmt.Fprintf(w, tt.body, calls[0].ID)
					return
				}
				r.Body = readCloser{&body}
				node.ServeHTTP(w, r)
			})
			s := newSet(t, Config{URLs: []string{node.URL + "#in-flight=1"}, MaxWait: -1})
			checkLookup(t, s, 1)
			all(t, s, 100)
			before := refused
			all(t, s, 100)
			if refused != before {
				t.Errorf("%d batches were refused before, %d after that was known", before, refused-before)
			}
			if err := s.Ready(); err != nil {
				t.Error(err)
			}
		})
	}
}

type readCloser struct{ *bytes.Buffer }

func (readCloser) Close() error { return nil }

// A node that fails at everything is not asked for one half after the other.
func TestFailuresAreNotHalvedForLong(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{node.URL}})
	checkLookup(t, s, 1)
	node.Handle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusInternalServerError)
	})
	before := node.Requests.Load()
	sels := make([]schema.Selector, 32)
	for i := range sels {
		sels[i] = schema.Number(uint64(i))
	}
	for i, o := range s.nodes[0].blocks(ctxFor(t, 10*time.Second), sels) {
		if !errors.Is(o.err, ErrUnreachable) {
			t.Errorf("block %d: %v, want ErrUnreachable", i, o.err)
		}
	}
	if got := node.Requests.Load() - before; got > 8 {
		t.Errorf("%d requests", got)
	}
}

// A node that refuses everything with an object is asked in batches once it is well.
func TestErrorsDoNotEndBatches(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{node.URL}})
	checkLookup(t, s, 1)
	node.Handle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no capacity"}}`))
	})
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); err == nil {
		t.Fatal("an answer of a node that gives none")
	}
	node.Handle(nil)
	checkLookup(t, s, 5)
	if s.nodes[0].single.Load() {
		t.Error("it is asked for one call at a time")
	}
}
