//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// promised is how soon edges know of a new key or of a revoked one.
const promised = time.Second

// statusOf is the HTTP status that an error stands for, 0 for none.
func statusOf(err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	return 0
}

// usable waits until the key is good on every edge, over HTTP and WebSocket.
func (f *fleet) usable(t *testing.T, key string, q question) {
	t.Helper()
	began := time.Now()
	for _, e := range f.edges {
		eventually(t, promised, "the new key to be good on "+e.name, func() error {
			return ask(t.Context(), f.httpCaller(e, true, key), q)
		})
		if err := ask(t.Context(), f.mustWS(e, true, key), q); err != nil {
			t.Errorf("%s: WebSocket: %v", e.name, err)
		}
	}
	t.Logf("the new key was good everywhere after %v", time.Since(began).Round(time.Millisecond))
}

// refused waits until the key is no good on any edge.
func (f *fleet) refused(t *testing.T, key string, q question) {
	t.Helper()
	for _, e := range f.edges {
		for _, secure := range []bool{false, true} {
			eventually(t, promised, "the key to be refused on "+e.name, func() error {
				err := ask(t.Context(), f.httpCaller(e, secure, key), q)
				if err == nil {
					return errors.New("it is good")
				}
				if statusOf(err) != http.StatusUnauthorized {
					return fmt.Errorf("got %w, want status 401", err)
				}
				return nil
			})
			c, err := f.wsCaller(t.Context(), e, secure, key)
			if statusOf(err) != http.StatusUnauthorized {
				t.Errorf("%s: WebSocket: got %v, want status 401", e.name, err)
			}
			if err == nil {
				_ = c.conn.CloseNow()
			}
		}
	}
}

// TestKeys issues and revokes keys with the operator's commands, while everything
// logs all that it can.
func TestKeys(t *testing.T) {
	_, with, _ := sepolia(t)
	q := question{block: &with[0]}
	f := newFleet(t)
	f.startNATS("-DV") // every message on the bus is in its log
	args := []string{"--log-level", "debug"}
	f.startWorker(startNode(t, "").url, args...)
	for range 2 {
		f.startEdge(args...)
	}
	var secrets []string
	var ids []string
	for _, name := range []string{"first", "second"} {
		stdout, stderr, code := f.keys("create", "--name", name)
		lines := strings.Split(stdout, "\n")
		if n := len(lines); code != 0 || n < 2 || lines[n-1] != "" || !regexp.MustCompile(`^[A-Za-z0-9_]{40,64}$`).MatchString(lines[n-2]) {
			t.Fatalf("create: exit code %d; want the key as the last line of the standard output, got %q; %s", code, stdout, stderr)
		}
		key := lines[len(lines)-2]
		if strings.Contains(stderr, key) || len(lines) > 2 {
			t.Errorf("create: want the key alone on the standard output, and only there; got %q and %q", stdout, stderr)
		}
		id := regexp.MustCompile(`[0-9a-f]{16}`).FindString(stderr)
		if id == "" || !strings.Contains(stderr, name) {
			t.Fatalf("create: the standard error names no ID and name: %s", stderr)
		}
		secrets, ids = append(secrets, key), append(ids, id)
		if name == "first" {
			f.waitReady() // edges need one key to be ready
		}
		f.usable(t, key, q)
	}

	t.Run("list and show", func(t *testing.T) {
		for _, c := range [][]string{{"list"}, {"show", ids[0]}, {"show", "second"}} {
			stdout, stderr, code := f.keys(c...)
			if code != 0 {
				t.Errorf("%v: exit code %d: %s", c, code, stderr)
			}
			for i, key := range secrets {
				if strings.Contains(stdout+stderr, key) {
					t.Errorf("%v prints a key", c)
				}
				if c[0] == "list" && !strings.Contains(stdout, ids[i]) {
					t.Errorf("list does not name %s:\n%s", ids[i], stdout)
				}
			}
		}
	})

	// The first by its ID, the second by its name.
	for i, by := range []string{ids[0], "second"} {
		t.Run("revoke "+[]string{"by ID", "by name"}[i], func(t *testing.T) {
			var open []*wsCaller
			for _, e := range f.edges {
				open = append(open, f.mustWS(e, false, secrets[i]), f.mustWS(e, true, secrets[i]))
			}
			_, stderr, code := f.keys("revoke", by)
			if code != 0 || strings.Contains(stderr, secrets[i]) {
				t.Fatalf("revoke: exit code %d: %s", code, stderr)
			}
			ctx, cancel := context.WithTimeout(t.Context(), promised)
			defer cancel()
			for _, c := range open {
				wantClose(ctx, t, "a WebSocket of the revoked key", c, websocket.StatusCode(4401))
			}
			f.refused(t, secrets[i], q)
			if i == 0 {
				f.usable(t, secrets[1], q)
			}
		})
	}

	t.Run("revoke what there is not", func(t *testing.T) {
		// A key in the place of its ID is a likely mistake.
		for _, what := range []string{"nobody", strings.Repeat("0", 16), secrets[0]} {
			stdout, stderr, code := f.keys("revoke", what)
			if code != 1 || !strings.Contains(stderr, "no such API key") {
				t.Errorf("revoke %q: exit code %d, %q; want 1 and a message", what, code, stderr)
			}
			if strings.Contains(stdout+stderr, secrets[0]) {
				t.Error("revoke repeats the key that it was given")
			}
		}
	})

	t.Run("no log has a key", func(t *testing.T) {
		// What clients try in vain is a secret too: most often of somebody else.
		wellFormed := "ommer_" + strings.Repeat("Zq9", 16) + "x"
		for _, wrong := range []string{wellFormed, "correct-horse-battery-staple"} {
			secrets = append(secrets, wrong)
			f.refused(t, wrong, q)
		}
		for name, log := range f.logs() {
			if log == "" {
				t.Errorf("%s has logged nothing", name)
			}
			for i, key := range secrets {
				if strings.Contains(log, key) {
					t.Errorf("the log of %s has key %d", name, i)
				}
			}
		}
	})
}
