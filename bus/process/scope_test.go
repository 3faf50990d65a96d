package process

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// page asks an Admin that has no listener.
func page(t *testing.T, a *Admin, path string) (code int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	a.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b)
}

func newAdmin(t *testing.T) *Admin {
	t.Helper()
	a, err := NewAdmin("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A process is ready with one of its networks, and tells of each.
func TestReadyPerNetwork(t *testing.T) {
	down := errors.New("down")
	var bus, lookup1, upstream1, lookup2 error
	a := newAdmin(t)
	a.Check("bus", func() error { return bus })
	a.Scope("n1").Check("lookup", func() error { return lookup1 })
	a.Scope("n2").Check("lookup", func() error { return lookup2 })
	a.Scope("n1").Check("upstream", func() error { return upstream1 })
	for _, tt := range []struct {
		name                            string
		bus, lookup1, upstream1, lookup error
		all, n1, n2                     int
	}{
		{"all is well", nil, nil, nil, nil, 200, 200, 200},
		{"one network is down", nil, nil, nil, down, 200, 200, 503},
		{"the other is down in part", nil, nil, down, nil, 200, 503, 200},
		{"both are down", nil, nil, down, down, 503, 503, 503},
		{"what they share is down", down, nil, nil, nil, 503, 503, 503},
	} {
		bus, lookup1, upstream1, lookup2 = tt.bus, tt.lookup1, tt.upstream1, tt.lookup
		for query, want := range map[string]int{"": tt.all, "?network=n1": tt.n1, "?network=n2": tt.n2, "?network=n3": 404, "?network=": 404} {
			if code, body := page(t, a, "/readyz"+query); code != want {
				t.Errorf("%s: /readyz%s: %d %s, want %d", tt.name, query, code, body, want)
			}
		}
	}
	lookup2 = down
	bus = nil
	_, body := page(t, a, "/readyz")
	var got map[string]string
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"bus": "ok", "n1.lookup": "ok", "n1.upstream": "down", "n2.lookup": "down"}
	upstream1 = down
	if _, body = page(t, a, "/readyz"); json.Unmarshal([]byte(body), &got) != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// With one network its checks have plain names, and pages need no query.
func TestOneNetwork(t *testing.T) {
	a := newAdmin(t)
	s := a.Scope("n1")
	s.Check("lookup", func() error { return nil })
	s.Handle("GET /page", text("one"))
	if code, body := page(t, a, "/readyz"); code != 200 || strings.TrimSpace(body) != `{"lookup":"ok"}` {
		t.Errorf("readyz: %d %s", code, body)
	}
	if code, body := page(t, a, "/page"); code != 200 || body != "one" {
		t.Errorf("page: %d %s", code, body)
	}
}

func TestPagesPerNetwork(t *testing.T) {
	a := newAdmin(t)
	a.Scope("n1").Handle("GET /page", text("one"))
	a.Scope("n2").Handle("GET /page", text("two"))
	a.Scope("n3")
	for query, want := range map[string]struct {
		code int
		body string
	}{"": {200, "one"}, "?network=n1": {200, "one"}, "?network=n2": {200, "two"}, "?network=n3": {404, "404"}, "?network=n4": {404, "no such network"}} {
		if code, body := page(t, a, "/page"+query); code != want.code || !strings.HasPrefix(body, want.body) {
			t.Errorf("/page%s: %d %s, want %d %s", query, code, body, want.code, want.body)
		}
	}
}

func TestMetricsPerNetwork(t *testing.T) {
	a := newAdmin(t)
	for _, name := range []string{"n1", "n2"} {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total", Help: "Things."})
		if err := a.Scope(name).Registerer.Register(c); err != nil {
			t.Fatal(err)
		}
		c.Inc()
	}
	_, body := page(t, a, "/metrics")
	for _, want := range []string{`things_total{network="n1"} 1`, `things_total{network="n2"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
}

type text string

func (s text) ServeHTTP(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, string(s)) }
