package certs

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The certificate for local work is made once, and what cannot be used is not thrown
// away.
func TestSelfSigned(t *testing.T) {
	dir := t.TempDir()
	first, err := SelfSigned(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(first.Cert)
	if err != nil {
		t.Fatal(err)
	}
	again, err := SelfSigned(dir)
	if err != nil || again != first {
		t.Fatalf("again: %v, %v", again, err)
	}
	if after, err := os.ReadFile(first.Cert); err != nil || !bytes.Equal(before, after) {
		t.Errorf("it was made anew: %v", err)
	}
	s, _ := open(t, Config{Pairs: []Pair{first}})
	served(t, s.TLS(), "localhost")

	write(t, first.Key, nil)
	if _, err := SelfSigned(dir); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("a broken one: %v", err)
	}
}
