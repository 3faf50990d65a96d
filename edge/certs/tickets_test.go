package certs

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	hexKey    = strings.Repeat("a1", ticketKeySize)
	base64Key = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("b", ticketKeySize)))
)

func TestParseTicketKeys(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		keys       int
		want       string // error
	}{
		{"one", hexKey, 1, ""},
		{"both ways, blank lines", "\n" + base64Key + "\r\n\n " + strings.ToUpper(hexKey) + "\n", 2, ""},
		{"none", "\n\n", 0, "no key"},
		{"short", hexKey + "\n" + hexKey[2:], 0, "line 2: want 32 bytes"},
		{"long", hexKey + "00", 0, "line 1: want 32 bytes"},
		{"neither", strings.Repeat("!", 44), 0, "line 1: want 32 bytes"},
	} {
		keys, err := parseTicketKeys([]byte(tt.text))
		if len(keys) != tt.keys || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %d keys, %v, want %d, %q", tt.name, len(keys), err, tt.keys, tt.want)
		}
	}
	keys, err := parseTicketKeys([]byte(base64Key + "\n" + hexKey))
	if err != nil || string(keys[0][:]) != strings.Repeat("b", ticketKeySize) || hex.EncodeToString(keys[1][:]) != hexKey {
		t.Errorf("keys %x, %v", keys, err)
	}
}

func TestTicketKeysOpenToOthers(t *testing.T) {
	p, file := newPair(t), filepath.Join(t.TempDir(), "tickets")
	issue(t, 1, far, "a.test").write(t, p)
	write(t, file, []byte(hexKey))
	cfg := Config{Pairs: []Pair{p}, TicketKeys: file}
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o440: false, 0o640: false, 0o644: true, 0o604: true, 0o602: true} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		_, err := New(cfg)
		if refused != (err != nil) || err != nil && !(strings.Contains(err.Error(), file) && strings.Contains(err.Error(), "chmod o=")) {
			t.Errorf("%v: %v, refused should be %v", mode, err, refused)
		}
	}
	// What becomes so later is not used, nor said twice, and good again afterwards.
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, log := open(t, cfg)
	for _, step := range []struct {
		mode           os.FileMode
		errors, loaded int
	}{{0o644, 1, 1}, {0o600, 1, 2}} {
		if err := os.Chmod(file, step.mode); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s.refresh(false)
		}
		errors, loaded := strings.Count(log.String(), "level=ERROR"), strings.Count(log.String(), "ticket keys loaded")
		if errors != step.errors || loaded != step.loaded {
			t.Errorf("mode %v: %d errors, %d loads, want %d, %d:\n%s", step.mode, errors, loaded, step.errors, step.loaded, log)
		}
	}
	if strings.Contains(log.String(), hexKey) {
		t.Error("the log has the key")
	}
}

// A client resumes wherever the key of its ticket is known, first in the file or not,
// and nowhere else. Without a file that is where it has been, also when the
// certificate is another.
func TestResume(t *testing.T) {
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			p, dir := newPair(t), t.TempDir()
			issue(t, 1, far, "a.test").write(t, p)
			with := func(name, keys string) *Store {
				t.Helper()
				cfg := Config{Pairs: []Pair{p}}
				if keys != "" {
					cfg.TicketKeys = filepath.Join(dir, name)
					write(t, cfg.TicketKeys, []byte(keys))
				}
				s, _ := open(t, cfg)
				return s
			}
			resumes := func(what string, first, then *tls.Config, want bool, between func()) {
				t.Helper()
				client := &tls.Config{
					ServerName: "a.test", InsecureSkipVerify: true, MaxVersion: version,
					ClientSessionCache: tls.NewLRUClientSessionCache(1),
				}
				if state, err := connect(t, first, client); err != nil || state.DidResume {
					t.Fatalf("%s: first: resumed %v, %v", what, state.DidResume, err)
				}
				if between != nil {
					between()
				}
				state, err := connect(t, then, client)
				if err != nil || state.DidResume != want {
					t.Errorf("%s: resumed %v, %v, want %v", what, state.DidResume, err, want)
				}
			}
			none := func() {}
			a, b := with("a", hexKey), with("b", base64Key+"\n"+hexKey)
			other, own, own2 := with("other", base64Key), with("", ""), with("", "")
			resumes("the same key", a.TLS(), with("a2", hexKey).TLS(), true, none)
			resumes("a key that is not the first", a.TLS(), b.TLS(), true, none)
			resumes("another key", a.TLS(), other.TLS(), false, none)
			resumes("no file at either", own.TLS(), own2.TLS(), false, none)

			config := own.TLS()
			resumes("no file, another certificate", config, config, true, func() {
				issue(t, 2, far, "a.test").write(t, p)
				own.refresh(true)
				if served(t, config, "a.test") != 2 {
					t.Error("the new certificate is not served")
				}
			})
			turn := with("turn", hexKey)
			rotate := func(keys string) func() {
				return func() {
					write(t, filepath.Join(dir, "turn"), []byte(keys))
					turn.refresh(false)
					turn.refresh(false)
				}
			}
			resumes("rotated", turn.TLS(), turn.TLS(), true, rotate(base64Key+"\n"+hexKey))
			resumes("the new key first", turn.TLS(), other.TLS(), true, none)
			resumes("not so at one that has the old key alone", turn.TLS(), a.TLS(), false, none)
			resumes("removed", a.TLS(), turn.TLS(), false, rotate(base64Key))
		})
	}
}
