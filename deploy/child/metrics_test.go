package child

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMetrics(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(`# HELP open Connections.
# TYPE open gauge
open{transport="plain"} 3
open{transport="over TLS"} 4.5
opened 7
resident 1.5e+07
`))
	}))
	defer server.Close()
	m, err := ReadMetrics(t.Context(), strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"open": 7.5, `open{transport="over TLS"}`: 4.5, "opened": 7, "resident": 15e6, "none": 0} {
		if got := m.Sum(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for _, text := range []string{"open", "open many\n", "open 1 \n"} {
		if _, err := parseMetrics(strings.NewReader(text)); !errors.Is(err, errMetrics) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
