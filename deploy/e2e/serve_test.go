//go:build e2e

package e2e

import (
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// served is a running `ommer serve`.
type served struct {
	*process
	curl string // the line to try
	key  string
}

// serve starts `ommer serve` on free ports and waits for what it prints.
func serve(t *testing.T, data string, args ...string) *served {
	t.Helper()
	s := &served{process: start(t, "ommer", "ommer", append([]string{
		"serve", "--data", data, "--https", "127.0.0.1:0", "--http", "127.0.0.1:0",
		"--admin", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0",
	}, args...)...)}
	eventually(t, soon, "ommer serve to print a curl line", func() error {
		if !s.running() {
			t.Fatalf("ommer serve ended, exit code %d", s.code)
		}
		stdout, _ := s.output()
		s.curl = regexp.MustCompile(`(?m)^ *(curl .*)\n`).FindString(stdout)
		s.key = regexp.MustCompile(`/v3/([A-Za-z0-9_.~-]+)\s`).FindString(s.curl)
		if s.curl == "" {
			return errors.New("there is none")
		}
		return nil
	})
	for _, address := range []string{"https://", "wss://", "http://", "ws://"} {
		if stdout, _ := s.output(); !strings.Contains(stdout, " "+address) {
			t.Errorf("no %s address is printed:\n%s", address, stdout)
		}
	}
	if s.key = strings.TrimSpace(strings.TrimPrefix(s.key, "/v3/")); s.key == "" {
		t.Fatalf("no key in: %s", s.curl)
	}
	return s
}

// try runs the printed line as it is and wants an uncle.
func (s *served) try(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "-c", s.curl).Output()
	if err != nil {
		t.Fatalf("%s: %v", s.curl, err)
	}
	r, err := result(out, 1)
	if err == nil {
		_, err = header(r)
	}
	if err != nil {
		t.Errorf("%s: %v", s.curl, err)
	}
}

// leave stops it and wants it to be quick about it.
func (s *served) leave(t *testing.T) {
	t.Helper()
	began := time.Now()
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	if _, log := s.output(); strings.Contains(log, s.key) {
		t.Error("the log has the key")
	}
}

func TestServe(t *testing.T) {
	path, _, _ := sepolia(t)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"real blocks", []string{"--blocks", path}},
		{"generated chain", nil},
		{"an archive alone", []string{"--archive", buildArchive(t, path)}},
		{"an era1 file as the archive", []string{"--archive", path}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := t.TempDir()
			first := serve(t, data, c.args...)
			first.try(t)
			first.leave(t)

			second := serve(t, data, c.args...)
			if second.key != first.key {
				t.Error("the second start has another key")
			}
			second.try(t)
			second.leave(t)
		})
	}
}
