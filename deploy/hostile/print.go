package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// print writes what came of a round.
func (r *round) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", r.name())
	fmt.Fprintf(w, "  attackers  %d in %.1f s: %d connections, %.1f MB sent, %s CPU\n",
		r.attack.enemies, r.Took.Seconds(), r.Met.Lives, float64(r.Met.Sent)/1e6, seconds(r.Met.CPU))
	fmt.Fprintf(w, "  met        %s\n", r.met())
	fmt.Fprintf(w, "  edge       %s CPU, at most %d MiB, %d connections, %d files, %d goroutines; then %d MiB, %d, %d, %d\n",
		seconds(r.EdgeCPU), mib(r.Most.RSS), r.Most.Conns, r.Most.Files, r.Most.Goroutines,
		mib(r.End.RSS), r.End.Conns, r.End.Files, r.End.Goroutines)
	fmt.Fprintf(w, "  it says    %s\n", strings.Join(r.Says, ", "))
	fmt.Fprintf(w, "  honest     before, during, after: p50 %s %s %s, p99 %s %s %s, newcomers' worst %s %s %s; %d right, %d wrong, %d failed\n",
		ms(r.Before.P50), ms(r.During.P50), ms(r.After.P50), ms(r.Before.P99), ms(r.During.P99), ms(r.After.P99),
		ms(r.Before.JoinMax), ms(r.During.JoinMax), ms(r.After.JoinMax), r.During.Right+r.After.Right, r.During.Wrong+r.After.Wrong, r.During.Failed+r.After.Failed)
	for _, c := range r.Complaints {
		fmt.Fprintf(w, "  FAILED     %s\n", c)
	}
}

// met is the answers and ends that attackers met.
func (r *round) met() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(r.Met.Answers)) {
		parts = append(parts, fmt.Sprintf("%d answers %s", r.Met.Answers[what], what))
	}
	for _, what := range slices.Sorted(maps.Keys(r.Met.Ends)) {
		parts = append(parts, fmt.Sprintf("%d ends %s", r.Met.Ends[what], what))
	}
	return strings.Join(parts, ", ")
}

// flagFrom is the ratio of p99 during an attack to before it from which it is flagged.
const flagFrom = 2

// ratio compares a time during the attack with that before it, of which at least a
// millisecond is assumed: below it two readings differ by chance.
func ratio(during, before time.Duration) float64 {
	return float64(during) / float64(max(before, time.Millisecond))
}

// printTable writes a line for each round.
func printTable(out io.Writer, rounds []*round) error {
	fmt.Fprint(out, "\nTimes in ms, before and during the attack; a ratio over 2 is marked by a star.\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "p99\tduring\tratio\tnewcomer's worst\tduring\tratio\tfailed\tedge CPU s\tattack CPU s\tMiB\t  attack\f")
	for _, r := range rounds {
		p99, worst := ratio(r.During.P99, r.Before.P99), ratio(r.During.JoinMax, r.Before.JoinMax)
		verdict := ""
		if len(r.Complaints) > 0 {
			verdict = "  FAILED"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%.2f\t%.2f\t%d\t  %s%s\f",
			ms(r.Before.P99), ms(r.During.P99), flagged(p99), ms(r.Before.JoinMax), ms(r.During.JoinMax), flagged(worst),
			r.During.Wrong+r.During.Failed, r.EdgeCPU.Seconds(), r.Met.CPU.Seconds(), mib(r.Most.RSS), r.name(), verdict)
	}
	return w.Flush()
}

func flagged(ratio float64) string {
	if ratio > flagFrom {
		return fmt.Sprintf("%.1f *", ratio)
	}
	return fmt.Sprintf("%.1f  ", ratio)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
