package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
)

// nodeKey is what no output may show of a node's URL.
const nodeKey = benchKey

func TestUpstreamsCheck(t *testing.T) {
	node := startNode(t, "")
	url := node.URL() + "/v3/" + nodeKey
	code, out, errs := ommer(t, "upstreams", "check", url)
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, %s\n%s", code, errs, out)
	}
	for _, want := range []string{node.URL() + "\n", "lookups    all\n", "client     ommer-devnode", "by hash    verified at block", "  All lookups.\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("colours where there is no terminal: %q", out)
	}

	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no such key: "+r.URL.Path, http.StatusForbidden)
	}))
	defer refusing.Close()
	t.Setenv("OMMER_UPSTREAM", url+", "+refusing.URL+"/"+nodeKey)
	code, out, errs = ommer(t, "upstreams", "check", "--json")
	var report struct {
		Version string
		Nodes   []struct{ Node, Lookups string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code != 1 || !strings.Contains(errs, "1 of 2 nodes cannot answer all lookups") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if n := report.Nodes; report.Version == "" || len(n) != 2 || n[0].Node != node.URL() || n[0].Lookups != "all" || n[1].Lookups != "none" {
		t.Errorf("%s", out)
	}
}

func TestUpstreamsCheckMistakes(t *testing.T) {
	for _, tt := range []struct {
		name, env string
		args      []string
		want      string
	}{
		{"no URL", "", nil, "want the URL of a node"},
		{"scheme", "", []string{"ftp://h.example/" + nodeKey}, "the scheme must be http, https, ws or wss"},
		{"port", "", []string{"http://h.example:99999/" + nodeKey}, "its port is out of range"},
		{"not a URL", "", []string{"http://h.example/%zz" + nodeKey}, "not a URL"},
		{"in the environment", "http://h.example," + nodeKey, nil, "URL 2 of 2: the scheme"},
		{"too many", strings.Repeat("http://h.example,", 33), nil, "33 URLs, want 1 to 32"},
		{"time", "", []string{"--timeout", "0s", "http://h.example"}, "--timeout: want 1ms to 1h"},
	} {
		t.Setenv("OMMER_UPSTREAM", tt.env)
		code, out, errs := ommer(t, append([]string{"upstreams", "check"}, tt.args...)...)
		if code != 2 || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit code %d, %s%s, want %q", tt.name, code, out, errs, tt.want)
		}
	}
}

// TestUpstreamsCheckInterrupted presses Ctrl-C while a node does not answer.
func TestUpstreamsCheckInterrupted(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
		<-ended
	}))
	defer server.Close()
	defer close(ended)
	for _, url := range []string{server.URL, "ws" + strings.TrimPrefix(server.URL, "http")} {
		code, out, errs := ommer(t, "upstreams", "check", "--timeout", "1h", url+"/"+nodeKey)
		if code != 1 || out != "" || !strings.Contains(errs, "stopped") {
			t.Errorf("exit code %d, %s%s", code, out, errs)
		}
	}
}
