package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Report is a run as JSON. It holds no key.
type Report struct {
	Version  string    `json:"version"` // of this program
	Started  time.Time `json:"started"`
	Settings Settings  `json:"settings"`
	Early    bool      `json:"ended_early"`
	Seconds  float64   `json:"seconds"` // the measured time
	Counts
	Before         map[string]Failed `json:"failed_before"`    // calls, in the warm-up
	CallsPerSecond float64           `json:"calls_per_second"` // right ones
	Connections    ConnectionCount   `json:"connections"`
	LatencyNS      Latency           `json:"latency_ns"`
	// Histogram is that of latencies in ns, HdrHistogram's compressed V2 encoding in
	// base64. Those of several runs can be added.
	Histogram string `json:"histogram"`
}

// Settings are what was asked for.
type Settings struct {
	URLs          []string `json:"urls"`
	Keys          int      `json:"keys"`
	Questions     int      `json:"questions"`
	Connections   int      `json:"connections"`
	InFlight      int      `json:"in_flight"`
	Batch         int      `json:"batch"`
	Rate          float64  `json:"rate"` // calls per second; 0: a closed loop
	Gzip          bool     `json:"gzip"`
	Verify        bool     `json:"verify"`
	RampSeconds   float64  `json:"ramp_seconds"`
	WarmUpSeconds float64  `json:"warmup_seconds"`
	Seconds       float64  `json:"duration_seconds"`
}

// ConnectionCount is what became of connections.
type ConnectionCount struct {
	Opened int               `json:"opened"` // those that were opened again included
	Failed map[string]Failed `json:"failed"`
}

// Latency is percentiles.
type Latency struct {
	Min  int64   `json:"min"`
	Mean float64 `json:"mean"`
	P50  int64   `json:"p50"`
	P90  int64   `json:"p90"`
	P99  int64   `json:"p99"`
	P999 int64   `json:"p99.9"`
	Max  int64   `json:"max"`
}

// Report makes the report of a result.
func (r *Result) Report(version string, started time.Time, s Settings) (Report, error) {
	rep := Report{
		Version: version, Started: started.UTC().Truncate(time.Second), Settings: s, Early: r.Early, Seconds: r.Took.Seconds(),
		Counts: r.Counts, Before: r.Before, Connections: ConnectionCount{r.Opened, r.Opening},
	}
	if rep.Counts.Failed == nil {
		rep.Counts.Failed = map[string]Failed{}
	}
	if r.Took > 0 {
		rep.CallsPerSecond = float64(r.Right) / r.Took.Seconds()
	}
	if h := r.Latency; h.TotalCount() > 0 {
		rep.LatencyNS = Latency{
			Min: h.Min(), Mean: h.Mean(), P50: h.ValueAtQuantile(50), P90: h.ValueAtQuantile(90),
			P99: h.ValueAtQuantile(99), P999: h.ValueAtQuantile(99.9), Max: h.Max(),
		}
	}
	text, err := r.Latency.Encode(hdr.V2CompressedEncodingCookieBase)
	rep.Histogram = string(text)
	return rep, err
}

// ErrorRatio is the part of the calls and of the attempts to connect that failed.
func (r *Result) ErrorRatio() float64 {
	failed, of := r.Failures(), r.Calls+r.Opened
	for _, f := range r.Opening {
		failed += f.Count
		of += f.Count
	}
	if of == 0 {
		return 1
	}
	return float64(failed) / float64(of)
}

// Wrong is how many answers were wrong, not just missing.
func (r *Result) Wrong() (n int) {
	for kind, f := range r.Failed {
		if wrongKinds[kind] {
			n += f.Count
		}
	}
	return n
}

// Nothing says why there is nothing in a result to rely on: not one right answer in the
// measured time. It returns nil if there is one.
func (r *Result) Nothing() error {
	var why []string
	add := func(where string, kinds map[string]Failed) {
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			why = append(why, fmt.Sprintf("%s%d %s", where, kinds[kind].Count, kind))
		}
	}
	add("", r.Failed)
	add("in the warm-up: ", r.Before)
	add("not opened: ", r.Opening)
	switch {
	case r.Right > 0:
		return nil
	case r.Took == 0:
		why = append([]string{"it ended before the measured time"}, why...)
	case r.Requests == 0:
		why = append([]string{"no request was due in the measured time"}, why...)
	}
	return fmt.Errorf("%w: %s", ErrNothing, strings.Join(why, ", "))
}

// Print writes the report for people.
func (rep *Report) Print(w io.Writer) error {
	s, ms := rep.Settings, func(ns int64) string { return Milliseconds(time.Duration(ns)) }
	keys := ""
	if s.Keys > 1 {
		keys = fmt.Sprintf(", %d keys", s.Keys)
	}
	fmt.Fprintf(w, "%s%s, %d questions\n", strings.Join(s.URLs, " "), keys, s.Questions)
	if s.Rate > 0 {
		fmt.Fprintf(w, "Open loop: %.6g calls/s on a schedule. Latency counts from when a request was due.\n", s.Rate)
	} else {
		fmt.Fprintf(w, "Closed loop: each connection sends when it has its answer, so that a slow server is\n"+
			"asked less, and its slow moments count for little. --rate measures what clients see.\n")
	}
	if rep.Early {
		fmt.Fprintln(w, "Ended early.")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nconnections\t%d, opened %d\n", s.Connections, rep.Connections.Opened)
	fmt.Fprintf(t, "measured\t%.1f s\n", rep.Seconds)
	batches := ""
	if s.Batch > 0 {
		batches = fmt.Sprintf(" in %d batches", rep.Requests)
	}
	fmt.Fprintf(t, "calls\t%d%s, %d right, %d of them null\n", rep.Calls, batches, rep.Right, rep.Null)
	fmt.Fprintf(t, "calls/s\t%.0f\n", rep.CallsPerSecond)
	if s.Rate > 0 {
		fmt.Fprintf(t, "late\t%d requests for which no connection was free when they were due\n", rep.Late)
	}
	if l := rep.LatencyNS; l.Max > 0 {
		fmt.Fprintf(t, "latency ms\tof right answers: p50 %s  p90 %s  p99 %s  p99.9 %s  max %s\n", ms(l.P50), ms(l.P90), ms(l.P99), ms(l.P999), ms(l.Max))
	}
	printFailed(t, "failed", rep.Failed)
	printFailed(t, "in the warm-up", rep.Before)
	printFailed(t, "not opened", rep.Connections.Failed)
	return t.Flush()
}

func printFailed(w io.Writer, name string, kinds map[string]Failed) {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		f := kinds[kind]
		if f.Example != "" {
			f.Example = ": " + f.Example
		}
		fmt.Fprintf(w, "%s\t%d %s%s\n", name, f.Count, kind, f.Example)
	}
}

// Milliseconds prints a time with three digits.
func Milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms >= 100:
		return strconv.FormatFloat(ms, 'f', 0, 64)
	case ms >= 10:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	default:
		return strconv.FormatFloat(ms, 'f', 2, 64)
	}
}

// PrintHistogram writes the distribution of latencies in ms, as HdrHistogram's tools
// print and plot it.
func (r *Result) PrintHistogram(w io.Writer) error {
	const perHalving = 5
	_, err := r.Latency.PercentilesPrint(w, perHalving, float64(time.Millisecond))
	return err
}
