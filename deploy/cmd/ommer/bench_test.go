package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ommer/ommer/deploy/load"
)

// nobody is a service without blocks that counts who asks it with which key.
type nobody struct {
	url          string
	right, wrong atomic.Int64
	fail         atomic.Bool
}

const benchKey = "seldom-seen-key"

func startNobody(t *testing.T) *nobody {
	t.Helper()
	n := &nobody{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct{ ID json.RawMessage }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &call); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if !strings.HasPrefix(r.URL.Path, "/v3/"+benchKey) {
			n.wrong.Add(1)
			http.Error(w, r.URL.Path, http.StatusUnauthorized)
			return
		}
		n.right.Add(1)
		if n.fail.Load() {
			call.ID = []byte("7")
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":null}`, call.ID)
	}))
	t.Cleanup(s.Close)
	n.url = s.URL + "/v3/"
	return n
}

// ommer runs the program and makes sure that it shows no key.
func ommer(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(args, streams{&stdout, &stderr})
	if all := stdout.String() + stderr.String(); strings.Contains(all, benchKey) {
		t.Errorf("ommer %q shows a key:\n%s", args, all)
	}
	return code, stdout.String(), stderr.String()
}

func TestBench(t *testing.T) {
	n := startNobody(t)
	file := filepath.Join(t.TempDir(), "report.json")
	code, out, errs := ommer(t, "bench", "--connections", "3", "--rate", "500", "--warmup", "0s", "--duration", "300ms",
		"--blocks", "1-9", "--index", "1", "--json", file, "--histogram", n.url+benchKey)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{n.url + "****", "Open loop: 500 calls/s", "9 questions", "p99.9", "#[Max"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report load.Report
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if report.Calls < 150 || report.Right != report.Calls || report.Null != report.Calls || report.Connections.Opened != 3 ||
		report.LatencyNS.P99 < report.LatencyNS.P50 || report.LatencyNS.P50 == 0 || report.Histogram == "" || report.Settings.Rate != 500 {
		t.Errorf("got %s", text)
	}
	if bytes.Contains(text, []byte(benchKey)) {
		t.Error("the report shows the key")
	}
}

// Several keys are used in turn, and what one of them may not is told and fails.
func TestBenchKeys(t *testing.T) {
	n := startNobody(t)
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(benchKey+"-1\n"+benchKey+"-2\nanother-"+benchKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"bench", "--connections", "6", "--warmup", "0s", "--duration", "500ms", "--blocks", "1", "--keys-file", file, "--json", "-", n.url + "KEY"}
	code, out, errs := ommer(t, args...)
	if code != 1 || !strings.Contains(errs, "--max-error-ratio") || n.right.Load() == 0 || n.wrong.Load() == 0 {
		t.Errorf("exit code %d, %d right, %d wrong: %s", code, n.right.Load(), n.wrong.Load(), errs)
	}
	var report load.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Settings.Keys != 3 || report.Failed["HTTP status 401"].Count == 0 {
		t.Errorf("%v: %s", err, out)
	}
	if code, _, errs := ommer(t, append(args, "--max-error-ratio", "1")...); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// Wrong answers fail the command whatever errors are allowed.
func TestBenchWrongAnswers(t *testing.T) {
	n := startNobody(t)
	n.fail.Store(true)
	code, _, errs := ommer(t, "bench", "--max-error-ratio", "1", "--warmup", "0s", "--duration", "500ms", "--blocks", "1", n.url+benchKey)
	if code != 1 || !strings.Contains(errs, "answers were wrong") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A key that a server quotes is not shown, wherever it stands, nor is what a terminal
// would obey.
func TestBenchQuotedKey(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "\x1b[2J"+strings.Repeat("x", 185)+r.URL.Path, http.StatusInternalServerError)
	}))
	defer s.Close()
	for _, args := range [][]string{nil, {"--json", "-"}} {
		args = append([]string{"bench", "--warmup", "0s", "--duration", "500ms", "--connections", "1", "--blocks", "1"}, args...)
		code, out, errs := ommer(t, append(args, s.URL+"/"+benchKey)...)
		if all := out + errs; code != 1 || strings.Contains(all, benchKey[:8]) || strings.Contains(all, "\x1b") || !strings.Contains(all, `x1b[2J`) {
			t.Errorf("exit code %d: %s%s", code, out, errs)
		}
	}
}

// Without one right answer in the measured time nothing was measured, whatever share of
// failures is allowed.
func TestBenchNothing(t *testing.T) {
	n := startNobody(t)
	hung := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(hung) })
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"hung", []string{"--warmup", "0s", "--timeout", "150ms", s.URL + "/" + benchKey}, "nothing was measured: "},
		{"hung in the warm-up", []string{"--warmup", "250ms", "--timeout", "200ms", "--connections", "2", s.URL + "/" + benchKey}, "in the warm-up: 2 timeout"},
		{"low rate", []string{"--warmup", "10ms", "--rate", "0.1", n.url + benchKey}, "nothing was measured: no request was due"},
		{"large batch", []string{"--warmup", "10ms", "--rate", "10", "--batch", "1000", "--timeout", "50ms", s.URL + "/" + benchKey}, "nothing was measured: no request was due"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"bench", "--max-error-ratio", "1", "--duration", "100ms", "--blocks", "1"}, tt.args...)
			if code, out, errs := ommer(t, args...); code != 1 || !strings.Contains(errs, tt.want) || !strings.Contains(out, "measured") {
				t.Errorf("exit code %d: %s%s", code, out, errs)
			}
		})
	}
}

// A report that cannot be written is told before the run if it can be known, and leaves
// the text.
func TestBenchReportFile(t *testing.T) {
	n := startNobody(t)
	args := []string{"bench", "--warmup", "0s", "--duration", "500ms", "--blocks", "1", n.url + benchKey, "--json"}
	if code, _, errs := ommer(t, append(args, t.TempDir())...); code != 2 || !strings.Contains(errs, "--json: ") || n.right.Load() != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	if code, out, errs := ommer(t, append(args, "/dev/full")...); code != 1 || !strings.Contains(errs, "--json: ") || !strings.Contains(out, "of right answers") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// Progress says what is waited for.
func TestProgress(t *testing.T) {
	for want, tick := range map[string]load.Tick{
		"opening": {}, "measuring": {Measured: true}, "waiting for the last answers": {Ended: true},
	} {
		var out strings.Builder
		p := newProgress(&out, 1)
		for range elsewhere {
			p.tick(tick)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}

// Where there are no uncles there is nothing to ask, unless somebody says what.
func TestBenchQuestions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "questions")
	if err := os.WriteFile(file, []byte(`["0x29c","0x0"]`+"\n\n"+`["0x`+strings.Repeat("ab", 32)+`","0x1"]`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := startNobody(t)
	if code, out, errs := ommer(t, "bench", "--warmup", "0s", "--duration", "500ms", "--questions", file, n.url+benchKey); code != 0 || !strings.Contains(out, "2 questions") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// Ctrl-C ends the measured time, and the result is printed. With a rate nothing is asked
// before that time, so that whatever was answered was measured.
func TestBenchInterrupted(t *testing.T) {
	n := startNobody(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n.right.Load() < 10 {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
	}()
	code, out, errs := ommer(t, "bench", "--connections", "4", "--rate", "100", "--warmup", "0s", "--duration", "1h", "--blocks", "1", n.url+benchKey)
	<-done
	if code != 0 || !strings.Contains(out, "Ended early.") || !strings.Contains(out, "calls/s") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

func TestReadKeys(t *testing.T) {
	got, err := readKeys([]byte("\ufeff# ours\r\na-key\r\n\n  another \n"))
	if err != nil || len(got) != 2 || got[0] != "a-key" || got[1] != "another" {
		t.Errorf("got %q, %v", got, err)
	}
	for text, want := range map[string]string{"": "no keys", "# none\n": "no keys", "one\n# x\ntwo " + benchKey: "line 3"} {
		if _, err := readKeys([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), benchKey) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// What fails before the run says which flag helps.
func TestBenchHints(t *testing.T) {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "slow down, "+r.URL.Path, http.StatusTooManyRequests)
	}))
	defer busy.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	ws := "ws" + strings.TrimPrefix(busy.URL, "http") + "/" + benchKey
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{secure.URL + "/" + benchKey}, []string{"--ca", "--insecure"}},
		{[]string{"--blocks", "1", secure.URL + "/" + benchKey}, []string{"--ca", "--insecure"}},
		{[]string{busy.URL + "/" + benchKey}, []string{"--questions"}},
		{[]string{ws}, []string{"--questions", "slow down, /****"}},
		{[]string{"--source", "192.0.2.1", busy.URL + "/" + benchKey}, []string{"not a local address", "--source"}},
	} {
		code, _, errs := ommer(t, append([]string{"bench", "--warmup", "0s", "--duration", "500ms"}, tt.args...)...)
		for _, want := range tt.want {
			if code != 1 || !strings.Contains(errs, want) {
				t.Errorf("exit code %d, no %q in %s", code, want, errs)
			}
		}
	}
}

func TestBenchMistakes(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no URL", nil, "url"},
		{"no such scheme", []string{"gopher://h/" + benchKey}, "want http://"},
		{"a user", []string{"http://u:p@h/" + benchKey}, "want http://"},
		{"no connections", []string{"--connections", "0", "http://h/KEY"}, "--connections"},
		{"too many", []string{"--connections", "1000000", "http://h/KEY"}, "ulimit -Hn"},
		{"in flight", []string{"--in-flight", "5000", "http://h/KEY"}, "--in-flight"},
		{"range", []string{"--blocks", "9-1", "http://h/KEY"}, "FROM-TO"},
		{"huge range", []string{"--blocks", "0-10000000", "http://h/KEY"}, "too many"},
		{"ratio", []string{"--max-error-ratio", "2", "http://h/KEY"}, "--max-error-ratio"},
		{"rate", []string{"--rate", "NaN", "http://h/k"}, "--rate"},
		{"endless rate", []string{"--rate", "+Inf", "http://h/k"}, "--rate"},
		{"no ratio", []string{"--max-error-ratio", "NaN", "http://h/k"}, "--max-error-ratio"},
		{"index", []string{"--index", "1", "http://h/k"}, "--blocks"},
		{"in flight over HTTP", []string{"--in-flight", "2", "http://h/k"}, "--in-flight: want a WebSocket"},
		{"gzip", []string{"--gzip", "ws://h/k"}, "--gzip: want http"},
		{"KEY itself", []string{"http://h/v3/KEY"}, "Try 'ommer bench --help'"},
		{"no certificate", []string{"--ca", "/dev/null", "https://h/k"}, "--ca /dev/null"},
		{"no place for keys", []string{"--keys-file", "/dev/null", "http://h/v3/" + benchKey}, "--keys-file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if code, _, errs := ommer(t, append([]string{"bench"}, tt.args...)...); code != 2 || !strings.Contains(errs, tt.want) {
				t.Errorf("exit code %d: %s", code, errs)
			}
		})
	}
}
