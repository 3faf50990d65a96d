package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// event is what came of a fault, or of several at a time.
type event struct {
	What string        `json:"what"`
	Well time.Duration `json:"well_after_ns"` // it was healed
	tally
	Complaints []string `json:"complaints,omitempty"`

	kind   string
	span   span
	healed time.Time
}

// MarshalJSON adds the times, as people write them.
func (e *event) MarshalJSON() ([]byte, error) {
	type plain event // without this method
	return json.Marshal(struct {
		Kind   string    `json:"kind"`
		Began  time.Time `json:"began"`
		Healed time.Time `json:"healed"`
		Ended  time.Time `json:"ended"`
		*plain
	}{e.kind, e.span.from, e.healed, e.span.to, (*plain)(e)})
}

// judge says what must not be.
func (e *event) judge(err error) {
	if err != nil {
		e.Complaints = append(e.Complaints, err.Error())
	}
	e.Complaints = append(e.Complaints, e.complaints()...)
}

// complaints are those about the answers.
func (t *tally) complaints() (cs []string) {
	if t.Wrong > 0 {
		cs = append(cs, fmt.Sprintf("%d answers were wrong: %s", t.Wrong, strings.Join(t.Examples, "; ")))
	} else if t.Bad > 0 {
		cs = append(cs, fmt.Sprintf("%d failed and nothing excuses it: %s", t.Bad, strings.Join(t.Examples, "; ")))
	}
	return cs
}

// print writes what came of the fault, with the time since the run began.
func (e *event) print(w io.Writer, began time.Time) {
	fmt.Fprintf(w, "\n%s  %s, healed after %s, well again %s later\n", e.span.from.UTC().Format("15:04:05.000"), e.What,
		seconds(e.healed.Sub(e.span.from)), seconds(e.Well))
	fmt.Fprintf(w, "  at +%-8s %d asked, %d right, %d wrong, %d failed%s\n", seconds(e.span.from.Sub(began)), e.Asked, e.Right, e.Wrong,
		e.Asked-e.Right-e.Wrong, e.failures())
	fmt.Fprintf(w, "  worst gap    %s; p50 %s, p99 %s, max %s\n", ms(e.Gap), ms(e.P50), ms(e.P99), ms(e.Max))
	for _, c := range e.Complaints {
		fmt.Fprintf(w, "  FAILED       %s\n", c)
	}
}

// failures lists them by kind.
func (t *tally) failures() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(t.Failed)) {
		fmt.Fprintf(&b, "; %d %s", t.Failed[kind], kind)
	}
	return b.String()
}

// add counts another tally in. Latencies are the worst of both, as histograms are not
// kept.
func (t *tally) add(o tally) {
	t.Asked, t.Right, t.Wrong, t.Bad = t.Asked+o.Asked, t.Right+o.Right, t.Wrong+o.Wrong, t.Bad+o.Bad
	if t.Failed == nil {
		t.Failed = map[string]int{}
	}
	for kind, n := range o.Failed {
		t.Failed[kind] += n
	}
	t.Examples = append(t.Examples, o.Examples...)
	t.Examples = t.Examples[:min(len(t.Examples), maxExamples)]
	t.Gap, t.P50, t.P99, t.Max = max(t.Gap, o.Gap), max(t.P50, o.P50), max(t.P99, o.P99), max(t.Max, o.Max)
}

// report is what came of a run.
type report struct {
	Seed       uint64        `json:"seed"`
	Began      time.Time     `json:"began"`
	Took       time.Duration `json:"took_ns"`
	Events     []*event      `json:"faults"`
	Calm       tally         `json:"calm"`
	Complaints []string      `json:"complaints,omitempty"` // of all
}

// judge gathers what must not be.
func (r *report) judge() {
	for _, e := range r.Events {
		for _, c := range e.Complaints {
			r.Complaints = append(r.Complaints, e.What+": "+c)
		}
	}
	for _, c := range r.Calm.complaints() {
		r.Complaints = append(r.Complaints, "between faults: "+c)
	}
}

// row is a line of the table: all faults of a kind.
type row struct {
	tally
	times int
	well  time.Duration // the longest
}

// print writes a line for each kind of fault, and all together.
func (r *report) print(out io.Writer) error {
	rows, all := map[string]*row{}, row{}
	for _, e := range r.Events {
		if rows[e.kind] == nil {
			rows[e.kind] = new(row)
		}
		for _, into := range []*row{rows[e.kind], &all} {
			into.add(e.tally)
			into.times++
			into.well = max(into.well, e.Well)
		}
	}
	fmt.Fprint(out, "\nThe worst of each kind; times in ms, well again in s after the fault was healed.\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "times\tasked\tright\twrong\tfailed\tnot excused\tgap\tp50\tp99\tmax\twell again\t  fault\f")
	line := func(x *row, name string) {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%.1f\t  %s\f", x.times, x.Asked, x.Right, x.Wrong, x.Asked-x.Right-x.Wrong,
			x.Bad, ms(x.Gap), ms(x.P50), ms(x.P99), ms(x.Max), x.well.Seconds(), name)
	}
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		line(rows[k], k)
	}
	line(&all, "all faults"+all.failures())
	line(&row{tally: r.Calm}, "between them"+r.Calm.failures())
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nseed %d: %d faults in %s, %d answers, %d wrong, %d complaints\n", r.Seed, all.times,
		r.Took.Round(time.Second), all.Asked+r.Calm.Asked, all.Wrong+r.Calm.Wrong, len(r.Complaints))
	for _, c := range r.Complaints {
		fmt.Fprintf(out, "FAILED  %s\n", c)
	}
	return nil
}

// write writes the report as JSON, if a file is named.
func (r *report) write(file string) error {
	if file == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
