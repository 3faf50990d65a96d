package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// busReport is the outcome of a run.
type busReport struct {
	Machine  machine   `json:"machine"`
	Program  string    `json:"program"` // nats-server's version
	Settings settings  `json:"settings"`
	Cells    []busCell `json:"cells"`
}

// busCell is one way of asking under one load, in one round.
type busCell struct {
	Way      string        `json:"way"`
	InFlight int           `json:"in_flight"`
	Workers  int           `json:"workers"`
	Servers  int           `json:"servers"`
	Requests uint64        `json:"requests"` // answered in the measured time, every answer right
	Took     time.Duration `json:"took_ns"`
	P50      time.Duration `json:"p50_ns"`
	P99      time.Duration `json:"p99_ns"`
	CPU      busCPU        `json:"cpu_ns"`
	Sent     uint64        `json:"messages_sent"` // by the asker
	Received uint64        `json:"messages_received"`
	Answered []uint64      `json:"answered"` // by each worker, before and after that time as well
}

// busCPU is user and system time, of all processes of a kind together.
type busCPU struct {
	Asker   time.Duration `json:"asker"`
	NATS    time.Duration `json:"nats"`
	Workers time.Duration `json:"workers"`
}

func (c busCPU) sum() time.Duration { return c.Asker + c.NATS + c.Workers }

// minus is the time used since an earlier reading.
func (c busCPU) minus(b busCPU) busCPU {
	return busCPU{c.Asker - b.Asker, c.NATS - b.NATS, c.Workers - b.Workers}
}

func (c busCell) perSecond() float64 { return float64(c.Requests) / c.Took.Seconds() }

// perRequest is a time's share of one request, in microseconds.
func (c busCell) perRequest(d time.Duration) float64 {
	return float64(d.Nanoseconds()) / 1e3 / float64(c.Requests)
}

// largest is the part of the answers that came from the worker with the most.
func (c busCell) largest() float64 {
	var sum uint64
	for _, n := range c.Answered {
		sum += n
	}
	if sum == 0 {
		return 0
	}
	return float64(slices.Max(c.Answered)) / float64(sum)
}

// busRow is a way under one load over all rounds. Every figure but the lowest and
// highest rate is a median of its own.
type busRow struct {
	Way                                     string
	Workers, InFlight                       int
	PerSecond, Lowest, Highest              float64
	P50, P99                                float64 // us
	Asker, NATS, WorkersCPU, CPU            float64 // us per request
	Sent, Received                          float64 // messages per request
	Largest                                 float64
	RateToRequest, CPUToRequest             float64 // divided by those of nc.Request of the same round; 0 without
	LowestCPUToRequest, HighestCPUToRequest float64
}

// rows groups the cells by load and way, in the order of their first appearance.
func (r *busReport) rows() [][]busRow {
	type group struct{ workers, inFlight int }
	var groups []group
	cells := map[group]map[string][]busCell{}
	for _, c := range r.Cells {
		g := group{c.Workers, c.InFlight}
		if cells[g] == nil {
			groups = append(groups, g)
			cells[g] = map[string][]busCell{}
		}
		cells[g][c.Way] = append(cells[g][c.Way], c)
	}
	var all [][]busRow
	for _, g := range groups {
		var rows []busRow
		for _, way := range wayNames {
			if rounds := cells[g][way]; len(rounds) > 0 {
				rows = append(rows, busSummary(rounds, cells[g][wayRequest]))
			}
		}
		all = append(all, rows)
	}
	return all
}

// busSummary makes a row of a way's rounds and those of nc.Request beside them.
func busSummary(rounds, beside []busCell) busRow {
	each := func(f func(busCell) float64) (values []float64) {
		for _, c := range rounds {
			values = append(values, f(c))
		}
		return values
	}
	rates := each(busCell.perSecond)
	row := busRow{
		Way: rounds[0].Way, Workers: rounds[0].Workers, InFlight: rounds[0].InFlight,
		PerSecond: median(rates), Lowest: slices.Min(rates), Highest: slices.Max(rates),
		P50:        median(each(func(c busCell) float64 { return float64(c.P50) / 1e3 })),
		P99:        median(each(func(c busCell) float64 { return float64(c.P99) / 1e3 })),
		Asker:      median(each(func(c busCell) float64 { return c.perRequest(c.CPU.Asker) })),
		NATS:       median(each(func(c busCell) float64 { return c.perRequest(c.CPU.NATS) })),
		WorkersCPU: median(each(func(c busCell) float64 { return c.perRequest(c.CPU.Workers) })),
		CPU:        median(each(func(c busCell) float64 { return c.perRequest(c.CPU.sum()) })),
		Sent:       median(each(func(c busCell) float64 { return float64(c.Sent) / float64(c.Requests) })),
		Received:   median(each(func(c busCell) float64 { return float64(c.Received) / float64(c.Requests) })),
		Largest:    median(each(busCell.largest)),
	}
	if row.Way == wayRequest || len(beside) != len(rounds) {
		return row
	}
	var rate, used []float64
	for i, c := range rounds {
		rate = append(rate, c.perSecond()/beside[i].perSecond())
		if of := beside[i].perRequest(beside[i].CPU.sum()); of > 0 {
			used = append(used, c.perRequest(c.CPU.sum())/of)
		}
	}
	row.RateToRequest, row.CPUToRequest = median(rate), median(used)
	if len(used) > 0 {
		row.LowestCPUToRequest, row.HighestCPUToRequest = slices.Min(used), slices.Max(used)
	}
	return row
}

// print writes the tables.
func (r *busReport) print(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "\n%d cores (%s), Linux %s, %s\n%s\n", m.Cores, m.CPU, m.Kernel, m.Go, r.Program)
	fmt.Fprintf(w, `
Questions over the bus and back, %d B answered, every answer checked. Medians of %d
rounds of %s. CPU is in microseconds per request, user and system, by kind of process.
Messages are those that the asker sent and received, per request. "most" is the share of
the worker with the most answers. The last columns divide by nc.Request's figures of the
same round, with the lowest and highest of the rounds.
`, quizAnswer, r.Settings.Rounds, r.Settings.Duration)
	for _, rows := range r.rows() {
		fmt.Fprintf(w, "\nNATS servers: %d, workers: %d, questions in flight: %d\n\n", r.Cells[0].Servers, rows[0].Workers, rows[0].InFlight)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "\treq/s\t(min\tmax)\tp50 us\tp99 us\tCPU: asker\tnats\tworkers\tsum\tsent\treceived\tmost\treq/s x nc\tCPU x nc\t(min\tmax)\t")
		for _, row := range rows {
			fmt.Fprintf(t, "%s\t%.0f\t(%.0f\t%.0f)\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\t%.3f\t%.0f %%\t%s\t%s\t(%s\t%s)\t\n",
				row.Way, row.PerSecond, row.Lowest, row.Highest, row.P50, row.P99,
				row.Asker, row.NATS, row.WorkersCPU, row.CPU, row.Sent, row.Received, 100*row.Largest,
				ratio(row.RateToRequest), ratio(row.CPUToRequest), ratio(row.LowestCPUToRequest), ratio(row.HighestCPUToRequest))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}
