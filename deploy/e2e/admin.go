//go:build e2e

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// admin is the address of a process's admin listener.
type admin string

// One connection per question, so that the test's own connections are not part of
// what it counts.
var adminClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}

func (a admin) get(path string) (status int, body string, err error) {
	resp, err := adminClient.Get("http://" + string(a) + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// ready is nil when the process says that it is, else it says what is missing.
func (a admin) ready() error {
	status, body, err := a.get("/readyz")
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return fmt.Errorf("/readyz says %d: %s", status, strings.TrimSpace(body))
	default:
		return nil
	}
}

// waitReady waits until the process is ready.
func waitReady(tb testing.TB, p *process, a admin) {
	tb.Helper()
	eventually(tb, soon, p.name+" to be ready", func() error {
		if !p.running() {
			tb.Fatalf("%s ended before it was ready, exit code %d", p.name, p.code)
		}
		return a.ready()
	})
}

var errNoMetric = errors.New("no such metric")

// metric returns the sum of the series of a metric, whatever their labels.
func (a admin) metric(name string) (sum float64, err error) {
	status, body, err := a.get("/metrics")
	if err != nil || status != http.StatusOK {
		return 0, fmt.Errorf("/metrics: %d, %w", status, err)
	}
	found := false
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum, found = sum+value, true
	}
	if !found {
		return 0, fmt.Errorf("%w: %s", errNoMetric, name)
	}
	return sum, nil
}

// mustMetric is metric where it has to be there.
func (a admin) mustMetric(tb testing.TB, name string) float64 {
	tb.Helper()
	v, err := a.metric(name)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}
