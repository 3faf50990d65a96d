package process

import (
	"bytes"
	"context"
	"errors"
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

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type cli struct {
	Options `embed:""`
	NATS    []string      `name:"nats" help:"Servers."`
	Wait    time.Duration `default:"1s"`
}

func parse(t *testing.T, args ...string) (cli, error) {
	t.Helper()
	var c cli
	_, err := Parse(&c, args, Program{Name: "prog", AdminDefault: "127.0.0.1:1", Out: io.Discard, Err: io.Discard})
	return c, err
}

func TestParsePrecedence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte("nats: [a, b]\nwait: 2s\nlog-level: debug\nadmin: 127.0.0.1:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OMMER_CONFIG", path)
	t.Setenv("OMMER_WAIT", "3s")
	c, err := parse(t, "--log-level", "warn")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b"}; !slices.Equal(c.NATS, want) {
		t.Errorf("file: nats = %q, want %q", c.NATS, want)
	}
	if c.Wait != 3*time.Second {
		t.Errorf("the environment must win over the file: wait = %v, want 3s", c.Wait)
	}
	if c.LogLevel != "warn" {
		t.Errorf("a flag must win over the file: log-level = %q, want warn", c.LogLevel)
	}
	if c.Admin != "127.0.0.1:2" {
		t.Errorf("the file must win over the default: admin = %q", c.Admin)
	}
}

func TestParseMistakesNameTheField(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "x.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name, file string
		args       []string
		want       []string
	}{
		{"unknown flag", "", []string{"--nope"}, []string{"--nope", "prog --help"}},
		{"bad duration", "", []string{"--wait", "soon"}, []string{"--wait", "soon"}},
		{"bad enum", "", []string{"--log-level", "loud"}, []string{"--log-level", "debug", "loud"}},
		{"missing file", "", []string{"--config", filepath.Join(dir, "none")}, []string{"--config", "none"}},
		{"negative time", "", []string{"--wait=-1s"}, []string{"--wait", "negative"}},
		{"bad address", "", []string{"--admin", "9090"}, []string{"--admin", "9090", "port"}},
		{"unknown key", "nast: x\n", nil, []string{"x.yaml", `"nast"`, "nats"}},
		{"bad value in file", "wait: soon\n", nil, []string{"--wait", "soon"}},
		{"map in file", "wait:\n  a: 1\n", nil, []string{"wait", "single value"}},
		{"map in a list", "nats: [a, {b: c}]\n", nil, []string{"nats[1]", "single value"}},
		{"no YAML", "wait: [\n", nil, []string{"x.yaml"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if tt.file != "" {
				args = append(args, "--config", file(tt.file))
			}
			_, err := parse(t, args...)
			var usage Usage
			if !errors.As(err, &usage) {
				t.Fatalf("err = %v, want a Usage", err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not mention %q", err, w)
				}
			}
			if code := ExitCode(io.Discard, "prog", err); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
		})
	}
}

func TestValuesOfTheEnvironmentAreNotRepeated(t *testing.T) {
	t.Setenv("OMMER_WAIT", "s3cret")
	_, err := parse(t)
	if err == nil || !strings.Contains(err.Error(), "OMMER_WAIT") {
		t.Errorf("err = %v, want one that names OMMER_WAIT", err)
	}
}

func TestHelpIsNoFailure(t *testing.T) {
	var out bytes.Buffer
	var c cli
	_, err := Parse(&c, []string{"--help"}, Program{Name: "prog", Description: "It does.", AdminDefault: "x", Out: &out, Err: io.Discard})
	if code := ExitCode(io.Discard, "prog", err); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, w := range []string{"It does.", "--admin", "OMMER_NATS"} {
		if !strings.Contains(out.String(), w) {
			t.Errorf("help does not mention %q", w)
		}
	}
}

func TestRunStopsInReverseOrder(t *testing.T) {
	var mu sync.Mutex
	var stopped []string
	part := func(name string) Part {
		return Part{name, func(ctx context.Context) error {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			stopped = append(stopped, name)
			return nil
		}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := Process{Log: slog.New(slog.DiscardHandler)}
	if err := p.Run(ctx, part("bus"), part("worker"), part("edge")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"edge", "worker", "bus"}; !slices.Equal(stopped, want) {
		t.Errorf("stopped %q, want %q", stopped, want)
	}
}

func TestRunEndsWithTheFirstFailure(t *testing.T) {
	boom := errors.New("boom")
	p := Process{Log: slog.New(slog.DiscardHandler)}
	wait := Part{"wait", func(ctx context.Context) error { <-ctx.Done(); return nil }}
	err := p.Run(t.Context(), wait, Part{"bad", func(context.Context) error { return boom }})
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), "bad") {
		t.Errorf("err = %v, want boom of part bad", err)
	}
	err = p.Run(t.Context(), wait, Part{"short", func(context.Context) error { return nil }})
	if err == nil || !strings.Contains(err.Error(), "short") {
		t.Errorf("err = %v, want a complaint about part short", err)
	}
}

func TestRunIsCutOff(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := Process{Log: slog.New(slog.DiscardHandler), StopAfter: time.Millisecond}
	err := p.Run(ctx, Part{"stuck", func(context.Context) error { <-release; return nil }})
	if !errors.Is(err, ErrStopTimeout) || !strings.Contains(err.Error(), "stuck") {
		t.Errorf("err = %v, want ErrStopTimeout for stuck", err)
	}
}

func TestAdmin(t *testing.T) {
	a, err := NewAdmin("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	missing := errors.New("no bus")
	a.Check("bus", func() error { return missing })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (int, string) {
		resp, err := client.Get("http://" + a.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, body := get("/livez"); code != 200 {
		t.Errorf("livez: %d %s", code, body)
	}
	if code, body := get("/readyz"); code != 503 || !strings.Contains(body, "no bus") {
		t.Errorf("readyz while the bus is missing: %d %s", code, body)
	}
	missing = nil
	if code, body := get("/readyz"); code != 200 || !strings.Contains(body, `"bus":"ok"`) {
		t.Errorf("readyz: %d %s", code, body)
	}
	if code, body := get("/metrics"); code != 200 || !strings.Contains(body, "ommer_build_info") {
		t.Errorf("metrics: %d %.200s", code, body)
	}
	a.Stopping()
	if code, _ := get("/readyz"); code != 503 {
		t.Errorf("readyz while stopping: %d, want 503", code)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
