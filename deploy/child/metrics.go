package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Metrics is what a process tells of itself at /metrics: the value of each series, by
// its name and labels as they are written there.
type Metrics map[string]float64

// errMetrics: /metrics does not look as the text format of Prometheus.
var errMetrics = errors.New("cannot be read")

// ReadMetrics asks the admin listener at addr. It keeps no connection, which would be
// one more file that the process has open.
func ReadMetrics(ctx context.Context, addr string) (Metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics says %s", resp.Status)
	}
	return parseMetrics(resp.Body)
}

func parseMetrics(r io.Reader) (Metrics, error) {
	m := Metrics{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		// A label may hold spaces, the value after it does not.
		space := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[space+1:], 64)
		if space < 0 || err != nil {
			return nil, fmt.Errorf("/metrics %w: %.100s", errMetrics, line)
		}
		m[line[:space]] = value
	}
	return m, lines.Err()
}

// Sum adds the series of a metric, whatever their labels.
func (m Metrics) Sum(name string) (sum float64) {
	for series, v := range m {
		rest, ok := strings.CutPrefix(series, name)
		if ok && (rest == "" || rest[0] == '{') {
			sum += v
		}
	}
	return sum
}
