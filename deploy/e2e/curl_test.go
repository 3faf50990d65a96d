//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// curl asks with curl. Each answer is followed by a line with its status, its version
// of HTTP, and how many connections were opened for it.
func (s *states) curl(t *testing.T, key string, q question, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "curl", append([]string{
		"--silent", "--show-error", "--cacert", s.certs.authorityFile, "-H", "Content-Type: application/json",
		"-d", string(q.appendCall(nil, 1)), "-w", "\n%{http_code} %{http_version} %{num_connects}\n",
		"https://" + s.main.named(t) + "/v3/" + key,
	}, args...)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &log, environment(t)
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

// TestCurl asks as people do who try something.
func TestCurl(t *testing.T) {
	_, with, _ := sepolia(t)
	s := startStates(t, with[0])
	q := question{block: &with[0]}
	url := "https://" + s.main.named(t) + "/v3/" + s.key

	// answered holds an output to right answers, each followed by such a line.
	answered := func(t *testing.T, stdout, stderr string, code int, wrote ...string) {
		t.Helper()
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		if code != 0 || len(lines) != 2*len(wrote) {
			t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
		}
		for i, w := range wrote {
			r, err := result([]byte(lines[2*i]), 1)
			if err == nil {
				_, err = q.check(r)
			}
			if err != nil || lines[2*i+1] != w {
				t.Errorf("got %v, %q, want %q", err, lines[2*i+1], w)
			}
		}
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"plain", nil},
		{"asked for HTTP/2, given 1.1", []string{"--http2"}},
		{"compressed", []string{"--compressed"}},
		{"chunked", []string{"-H", "Transfer-Encoding: chunked"}},
		{"expecting 100-continue", []string{"-H", "Expect: 100-continue"}},
		{"TLS 1.2", []string{"--tlsv1.2", "--tls-max", "1.2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := s.curl(t, s.key, q, c.args...)
			answered(t, stdout, stderr, code, "200 1.1 1")
		})
	}
	t.Run("two over one connection", func(t *testing.T) {
		stdout, stderr, code := s.curl(t, s.key, q, url)
		answered(t, stdout, stderr, code, "200 1.1 1", "200 1.1 0")
	})
	t.Run("wrong key", func(t *testing.T) {
		stdout, stderr, code := s.curl(t, "wrong-key", q, "--fail-with-body")
		want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"invalid API key"}}` + "\n401 1.1 1\n"
		if code != 22 || stdout != want || !strings.Contains(stderr, "error: 401") {
			t.Errorf("exit code %d, %q, %q; want 22, %q and the status", code, stdout, stderr, want)
		}
	})
	t.Run("unknown authority", func(t *testing.T) {
		stdout, stderr, code := s.curl(t, s.key, q, "--cacert", os.DevNull)
		if code != 77 && code != 60 {
			t.Errorf("exit code %d, %q, %q; want 60 or 77", code, stdout, stderr)
		}
	})
	t.Run("what README shows", func(t *testing.T) { readmeCurl(t) })
}

// readmeCurl runs the lines of README.md with what `ommer serve` leaves, and compares
// the answer with the one that is shown there.
func readmeCurl(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^    \$ (curl (?:.*\\\n)+.*)\n    (.*)\.\.\.$`).FindSubmatch(readme)
	if shown == nil {
		t.Fatal("README.md shows no curl line with its answer")
	}
	home := t.TempDir()
	path, _, _ := sepolia(t)
	s := serve(t, filepath.Join(home, ".local", "share", "ommer"), "--blocks", path)
	port := regexp.MustCompile(`https://localhost:(\d+)/`).FindStringSubmatch(s.curl)
	if port == nil {
		t.Fatalf("no port in: %s", s.curl)
	}
	line := strings.ReplaceAll(string(shown[1]), "localhost:8443", "localhost:"+port[1])
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "KEY=" + s.key}
	out, err := cmd.Output()
	if err != nil || !bytes.HasPrefix(out, shown[2]) {
		t.Errorf("%v; got %s, want what README.md shows: %s", err, out, shown[2])
	}
}
