package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
)

// report is the outcome of a run.
type report struct {
	Machine     machine      `json:"machine"`
	Programs    []string     `json:"programs"` // what they say of their version
	Settings    settings     `json:"settings"`
	AnswerBytes int          `json:"answer_bytes"`
	Cells       []cell       `json:"cells"`
	Idle        []idleMemory `json:"idle"`
}

// machine is where it was measured.
type machine struct {
	Cores  int    `json:"cores"`
	CPU    string `json:"cpu"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"` // of this program
}

type settings struct {
	Duration string `json:"duration"`
	Rounds   int    `json:"rounds"`
}

// thisMachine leaves out what cannot be found.
func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(b), "model name")
		line, _, _ := strings.Cut(rest, "\n")
		m.CPU = strings.TrimLeft(line, "\t: ")
	}
	return m
}

// print writes the tables.
func (r *report) print(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "\n%d cores (%s), Linux %s, %s\n%s\n", m.Cores, m.CPU, m.Kernel, m.Go, strings.Join(r.Programs, "; "))
	if len(r.Cells) > 0 {
		fmt.Fprintf(w, `
Uncle lookups by number over loopback, answers of %d bytes, every answer checked. A
path's "-gzip" asks for compressed answers and is compared with geth's compressed ones.
Medians of %d rounds of %s. Each connection has one request outstanding.

CPU is in microseconds per request, user and system, by process. "ours" is edge,
nats and worker together; the geth beside it is what geth used though nobody asked it.
The load is this program: it takes its CPU from the same cores, and adds to every
latency. The last columns divide by the figures of the same round: of geth, and of a
server that only echoes, bare nbio for http and ws, net/http with TLS for https and wss.
`, r.AnswerBytes, r.Settings.Rounds, r.Settings.Duration)
	}
	for _, rows := range r.rows() {
		fmt.Fprintf(w, "\n%d connections\n\n", rows[0].Conns)
		if err := printRows(w, rows); err != nil {
			return err
		}
	}
	if len(r.Idle) > 0 {
		fmt.Fprintf(w, "\nResident memory of an edge before and with %d idle connections, after one exchange\n"+
			"on each. Garbage is in it, the kernel's memory for sockets is not.\n\n", r.Idle[0].Conns)
		return printIdle(w, r.Idle)
	}
	return nil
}

func printRows(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\treq/s\t(min\tmax)\tp50 ms\tp99 ms\tCPU: edge\tnats\tworker\tours\tgeth\techo\tload\treq/s x geth\tCPU x geth\treq/s x echo\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.0f\t(%.0f\t%.0f)\t%.2f\t%.2f\t", r.Path, r.PerSecond, r.Lowest, r.Highest, r.P50, r.P99)
		for _, used := range []float64{r.Edge, r.NATS, r.Worker, r.Ours, r.Geth, r.Echo, r.Load} {
			fmt.Fprintf(t, "%.1f\t", used)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t\n", ratio(r.RateToGeth), ratio(r.CPUToGeth), ratio(r.RateToEcho))
	}
	return t.Flush()
}

// ratio is a dash for what was not compared.
func ratio(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

func printIdle(w io.Writer, idle []idleMemory) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tbefore MiB\tafter MiB\tbytes/connection\t")
	for _, m := range idle {
		note := ""
		if !m.Settled {
			note = " (not at rest)"
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.0f%s\t\n", m.Path, float64(m.Before)/(1<<20), float64(m.After)/(1<<20), m.perConn(), note)
	}
	return t.Flush()
}
