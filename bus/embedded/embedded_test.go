package embedded_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/ommer/ommer/bus/embedded"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	s, err := embedded.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestServesAndKeepsItsStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "when", "missing")
	put := func(value string) (old string) {
		s, err := embedded.New(embedded.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		nc, err := nats.Connect(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js, err := nc.JetStream()
		if err != nil {
			t.Fatal(err)
		}
		kv, err := js.CreateKeyValue(&nats.KeyValueConfig{Bucket: "b"})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := kv.Get("k"); err == nil {
			old = string(e.Value())
		}
		if _, err := kv.PutString("k", value); err != nil {
			t.Fatal(err)
		}
		return old
	}
	if got := put("one"); got != "" {
		t.Fatalf("a new store holds %q", got)
	}
	if got := put("two"); got != "one" {
		t.Fatalf("after a restart the store holds %q, want %q", got, "one")
	}
}

func TestWithoutStore(t *testing.T) {
	s := start(t, embedded.Config{})
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got := nc.MaxPayload(); got != 1<<20 {
		t.Errorf("max payload %d", got)
	}
}

func TestErrorsNameWhatIsWrong(t *testing.T) {
	inUse := t.TempDir()
	start(t, embedded.Config{Dir: inUse})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, c := range []struct {
		name string
		cfg  embedded.Config
		is   error
		says string
	}{
		{"store in use", embedded.Config{Dir: inUse}, embedded.ErrStore, inUse},
		{"store is a file", embedded.Config{Dir: file}, embedded.ErrStore, file},
		{"store below a file", embedded.Config{Dir: filepath.Join(file, "x")}, embedded.ErrStore, file},
		{"address in use", embedded.Config{Addr: ln.Addr().String()}, embedded.ErrStart, ln.Addr().String()},
		{"no address", embedded.Config{Addr: "nowhere"}, embedded.ErrStart, "Addr"},
		{"no port", embedded.Config{Addr: "127.0.0.1:http2"}, embedded.ErrStart, "http2"},
		{"no route", embedded.Config{Cluster: embedded.Cluster{Name: "c", Addr: "127.0.0.1:0", Routes: []string{"x"}}}, embedded.ErrStart, "Routes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := embedded.New(c.cfg)
			if err == nil {
				s.Close()
				t.Fatal("no error")
			}
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, want one that is %q and says %q", err, c.is, c.says)
			}
		})
	}
}

func TestLeafMistakesAreNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no seed, no certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := []string{"tls://127.0.0.1:7422"}
	for _, c := range []struct {
		name string
		leaf embedded.Leaf
		says string
	}{
		{"no port", embedded.Leaf{URLs: []string{"tls://host"}}, "Leaf.URLs"},
		{"another scheme", embedded.Leaf{URLs: []string{"http://host:7422"}}, "Leaf.URLs"},
		{"no seed", embedded.Leaf{URLs: good, SeedFile: file}, "Leaf.SeedFile"},
		{"no seed file", embedded.Leaf{URLs: good, SeedFile: file + "x"}, "Leaf.SeedFile"},
		{"no authority", embedded.Leaf{URLs: good, CAFile: file}, "Leaf.CAFile"},
		{"no certificate", embedded.Leaf{URLs: good, CertFile: file, KeyFile: file}, "Leaf.CertFile"},
		{"no key", embedded.Leaf{URLs: good, CertFile: file}, "Leaf.KeyFile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := embedded.New(embedded.Config{Leaf: c.leaf})
			if err == nil {
				s.Close()
				t.Fatal("no error")
			}
			if !errors.Is(err, embedded.ErrStart) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, want one that says %q", err, c.says)
			}
			if text := err.Error(); strings.Contains(text, "no seed, no certificate") {
				t.Errorf("the error repeats what is in the file: %s", text)
			}
		})
	}
}

// TestStartsWithoutItsCluster: a leaf does not wait for what it joins.
func TestStartsWithoutItsCluster(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := start(t, embedded.Config{
		Dir: t.TempDir(), Leaf: embedded.Leaf{Name: "leaf", URLs: []string{"nats://" + nobody}},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})).With("part", "nats"),
	})
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	s.Close()
	for line := range strings.Lines(log.String()) {
		if strings.Count(line, "part=") != 1 {
			t.Errorf("an attribute twice, or not at all: %s", line)
		}
	}
	if log.Len() == 0 {
		t.Error("nothing was logged")
	}
}
