package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// connectionsReport is the outcome of a run.
type connectionsReport struct {
	Machine  machine       `json:"machine"`
	Programs []string      `json:"programs"`
	Conns    int           `json:"conns"`
	Edges    int           `json:"edges"`
	Files    int           `json:"files"` // that a process may open
	Kinds    []crowdedKind `json:"kinds"`
}

// failed is an error if anything failed to be answered.
func (r *connectionsReport) failed() error {
	var errs []error
	for _, m := range r.Kinds {
		if m.Failed > 0 || m.Problem != "" {
			errs = append(errs, fmt.Errorf("%s: %d of %d questions failed: %s", m.Kind, m.Failed, m.Failed+m.Answered, m.Problem))
		}
	}
	return errors.Join(errs...)
}

const mib = 1 << 20

// each is a figure's share of one connection.
func (m *crowdedKind) each(total float64) float64 { return total / float64(m.Conns) }

// print writes what was measured of one kind.
func (m *crowdedKind) print(w io.Writer) error {
	fmt.Fprintf(w, "\n%s: %d connections in %.1f s, %.0f us of the edges' CPU each; %d answers checked, %d failed\n",
		m.Kind, m.Conns, m.Opening.Seconds(), m.each(float64(m.OpenCPU.Microseconds())), m.Answered, m.Failed)
	if m.Problem != "" {
		fmt.Fprintln(w, "the first failure:", m.Problem)
	}
	fmt.Fprintf(w, "connections by edge: %s (%d to %d)\n", strings.Trim(fmt.Sprint(m.Spread), "[]"), slices.Min(m.Spread), slices.Max(m.Spread))
	if m.Quiet > 0 {
		fmt.Fprintf(w, "pings: %d answered in %.0f s, for %.1f %% of one core and %.1f us of the edges' CPU each\n",
			m.Pings, m.Quiet.Seconds(), 100*m.QuietCPU.Seconds()/m.Quiet.Seconds(), float64(m.QuietCPU.Microseconds())/float64(max(m.Pings, 1)))
	}
	if !m.Settled {
		fmt.Fprintln(w, "The memory of the edges did not come to rest.")
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "       MiB  bytes/connection")
	row := func(bytes int64, what string) {
		fmt.Fprintf(w, "%10.1f  %16.0f  %s\n", float64(bytes)/mib, m.each(float64(bytes)), what)
	}
	k := m.Kernel
	row(m.After-m.Before, "the edges, resident")
	row(k.own(), "the kernel for both ends of them, of which")
	row(k.Slab, "- slabs")
	row(k.PageTables, "- page tables, of the clients as well")
	row(k.KernelStack+k.Percpu, "- stacks and per-CPU data")
	row(k.own()/2, "half of the kernel's, for the edges' end")
	row(m.After-m.Before+k.own()/2, "the edges and their half")
	row(m.Clients, "the clients, resident")
	row(-k.Available, "what is no longer available, whoever took it")
	if k.Listings > 0 {
		row(k.Listings, "left out: the kernel's, for somebody's list of open files")
	}
	if len(m.Objects) == 0 {
		_, err := fmt.Fprintln(w, "\nObjects of the kernel were not counted: /proc/slabinfo cannot be read, or too few connections.")
		return err
	}
	fmt.Fprint(w, "\nObjects in slabs for each connection, both ends:\n\n     count  size  bytes\n")
	var sum float64
	for _, o := range m.Objects {
		fmt.Fprintf(w, "%10.2f  %4d  %5.0f  %s\n", o.Objects, o.Size, o.bytes(), o.Cache)
		sum += o.bytes()
	}
	_, err := fmt.Fprintf(w, "%10s  %4s  %5.0f  together\n", "", "", sum)
	return err
}

// print writes the summary of all kinds.
func (r *connectionsReport) print(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "\n%d cores (%s), Linux %s, %s\n%s\n", m.Cores, m.CPU, m.Kernel, m.Go, strings.Join(r.Programs, "; "))
	fmt.Fprintf(w, "%d connections at a time to %d edges that share a port; a process may open %d files.\n\n", r.Conns, r.Edges, r.Files)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\topened s\tedges B/conn\tkernel B/conn, both ends\tedges MiB\tkernel MiB\tchecked\tfailed\t")
	for _, m := range r.Kinds {
		fmt.Fprintf(t, "%s\t%.1f\t%.0f\t%.0f\t%.1f\t%.1f\t%d\t%d\t\n", m.Kind, m.Opening.Seconds(), m.each(float64(m.After-m.Before)), m.each(float64(m.Kernel.own())),
			float64(m.After-m.Before)/mib, float64(m.Kernel.own())/mib, m.Answered, m.Failed)
	}
	return t.Flush()
}
