package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The program from its command line to its end, with clients of other makes.
func TestEcho(t *testing.T) {
	log, stderr := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, []string{"--http", "127.0.0.1:0", "--https", "127.0.0.1:0"}, io.Discard, stderr)
		stderr.Close()
	}()
	lines := bufio.NewScanner(log)
	said := func(pattern string) []string {
		for lines.Scan() {
			if m := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); m != nil {
				return m[1:]
			}
		}
		t.Fatalf("the log ends before it says %s", pattern)
		return nil
	}
	certFile := said(`certificate file=(\S+)`)[0]
	addrs := said(`https=(\S+) http=(\S+)`)
	go io.Copy(io.Discard, log)

	pem, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	ask := func(method, url, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s %s: %s %v", method, url, resp.Status, err)
		}
		return string(got)
	}
	long := strings.Repeat("0123456789abcdef", longest/16)
	for _, base := range []string{"https://" + addrs[0], "http://" + addrs[1]} {
		if got := ask("GET", base+"/", ""); got != "OK" {
			t.Errorf("GET: %q", got)
		}
		for _, body := range []string{"", "hello", long} {
			if got := ask("POST", base+"/", body); got != body {
				t.Errorf("POST of %d bytes: %d bytes, %.50q", len(body), len(got), got)
			}
		}
		c, _, err := websocket.Dial(t.Context(), base+"/echo", &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		for _, kind := range []websocket.MessageType{websocket.MessageText, websocket.MessageBinary} {
			for _, message := range []string{"", "hello", long} {
				sent := make(chan error, 1)
				go func() { sent <- c.Write(t.Context(), kind, []byte(message)) }()
				gotKind, got, err := c.Read(t.Context())
				if err != nil || gotKind != kind || !bytes.Equal(got, []byte(message)) {
					t.Errorf("%v of %d bytes: %v of %d, %v", kind, len(message), gotKind, len(got), err)
				}
				if err := <-sent; err != nil {
					t.Error(err)
				}
			}
		}
		_ = c.Write(t.Context(), websocket.MessageBinary, []byte(long+"x")) // may break off
		if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
			t.Errorf("over the limit: %v, want a close with 1009", err)
		}
	}
	client.CloseIdleConnections()
	stop()
	if code := <-exit; code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(certFile); !os.IsNotExist(err) {
		t.Errorf("the certificate is left behind: %v", err)
	}
}

func TestEchoWithoutAddress(t *testing.T) {
	var stderr strings.Builder
	if code := run(t.Context(), nil, io.Discard, &stderr); code != 2 || !strings.Contains(stderr.String(), "--http ADDR or --https ADDR is needed") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
