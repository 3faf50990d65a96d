//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// finding is one of testssl.sh's.
type finding struct {
	ID, Severity, Finding string
}

// kind is the finding's name without the certificate that it is about.
func (f finding) kind() string {
	kind, _, _ := strings.Cut(f.ID, " ")
	return kind
}

// excused are the findings above LOW that come from the test, each with its reason.
var excused = map[string]string{
	"cert_revocation":       "the test's authority revokes nothing and says nowhere that it would",
	"cert_expirationStatus": "the test's certificates are good for an hour",
	"cert_notAfter":         "the same",
}

// TestWithTestssl has testssl.sh look for weaknesses of an edge with an ECDSA and an RSA
// certificate. What is LOW is logged.
func TestWithTestssl(t *testing.T) {
	program, err := exec.LookPath("testssl")
	if err != nil {
		t.Skip("testssl is not installed (Debian: testssl.sh)")
	}
	f := newFleet(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, keyFile := filepath.Join(dir, "rsa.pem"), filepath.Join(dir, "rsa.key")
	f.certs.issue(3, key, cert, keyFile)
	f.startNATS()
	f.createKey("weak") // before there is one nothing is ready
	e := f.startEdge("--tls-cert", f.certs.certFile+","+cert, "--tls-key", f.certs.keyFile+","+keyFile)
	f.startWorker(startNode(t, "").url)
	f.waitReady()

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	report := filepath.Join(dir, "report.json")
	cmd := exec.CommandContext(ctx, program, "--quiet", "--color", "0", "--warnings", "off", "--nodns", "none",
		"--add-ca", f.certs.authorityFile, "--ip", "127.0.0.1", "--jsonfile", report,
		"--protocols", "--std", "--pfs", "--server-preference", "--server-defaults", "--vulnerable",
		"https://"+e.named(t))
	cmd.Env, cmd.Dir = append(environment(t), "TERM=dumb"), dir
	began := time.Now()
	out, err := cmd.CombinedOutput() // its exit code is not documented for findings
	text, readErr := os.ReadFile(report)
	var all []finding
	if readErr == nil {
		readErr = json.Unmarshal(text, &all)
	}
	if readErr != nil {
		t.Fatalf("%v (testssl: %v)\n%s", readErr, err, out)
	}

	counts, ok := map[string]int{}, map[string]int{}
	for _, f := range all {
		counts[f.Severity]++
		switch f.Severity {
		case "OK":
			ok[f.kind()]++
		case "INFO":
		case "LOW":
			t.Logf("LOW %s: %s", f.ID, f.Finding)
		default:
			if reason, is := excused[f.kind()]; is {
				t.Logf("%s %s: %s (%s)", f.Severity, f.ID, f.Finding, reason)
			} else {
				t.Errorf("%s %s: %s", f.Severity, f.ID, f.Finding)
			}
		}
	}
	// That it has come to its end, and seen both certificates.
	for kind, want := range map[string]int{"TLS1_2": 1, "TLS1_3": 1, "PFS": 1, "cert_chain_of_trust": 2, "heartbleed": 1, "RC4": 1} {
		if ok[kind] != want {
			t.Errorf("%s is right %d times, want %d", kind, ok[kind], want)
		}
	}
	if slices.ContainsFunc(all, func(f finding) bool { return f.kind() == "LUCKY13" && f.Severity != "OK" }) {
		t.Error("cipher suites with CBC are offered")
	}
	t.Logf("%d findings in %v: %v", len(all), time.Since(began).Round(time.Second), counts)
	if t.Failed() {
		t.Logf("%s", out)
	}
}
