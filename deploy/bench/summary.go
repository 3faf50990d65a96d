package main

import (
	"slices"
	"strings"
)

// row is a path under one number of connections, over all rounds. Every figure but
// the lowest and highest rate is a median of its own.
type row struct {
	Path                       string
	Conns                      int
	PerSecond, Lowest, Highest float64
	P50, P99                   float64 // ms

	// CPU in microseconds per request. Ours is that of the edge, NATS and the worker
	// together.
	Edge, NATS, Worker, Ours, Geth, Echo, Load float64

	// RateToGeth and CPUToGeth divide by geth's figure of the same round; 0 without
	// geth, and for geth itself.
	RateToGeth, CPUToGeth float64
	// RateToEcho divides by the yardstick's, see yardstickOf.
	RateToEcho float64
}

// rows groups the cells by number of connections and path, in the order of their
// first appearance.
func (r *report) rows() [][]row {
	var groups [][]row
	for _, conns := range distinct(r.Cells, func(c cell) int { return c.Conns }) {
		same := slices.DeleteFunc(slices.Clone(r.Cells), func(c cell) bool { return c.Conns != conns })
		var rows []row
		for _, path := range distinct(same, func(c cell) string { return c.Path }) {
			rows = append(rows, summarize(ofPath(same, path), ofPath(same, besideOf(path)), ofPath(same, yardstickOf(path))))
		}
		groups = append(groups, rows)
	}
	return groups
}

// summarize makes a row of a path's rounds and those of geth and of the yardstick beside
// them.
func summarize(rounds, geth, echo []cell) row {
	each := func(f func(cell) float64) []float64 {
		var values []float64
		for _, c := range rounds {
			values = append(values, f(c))
		}
		return values
	}
	rates := each(cell.perSecond)
	r := row{
		Path: rounds[0].Path, Conns: rounds[0].Conns,
		PerSecond: median(rates), Lowest: slices.Min(rates), Highest: slices.Max(rates),
		P50:    median(each(func(c cell) float64 { return c.P50.Seconds() * 1e3 })),
		P99:    median(each(func(c cell) float64 { return c.P99.Seconds() * 1e3 })),
		Edge:   median(each(func(c cell) float64 { return c.perRequest(c.CPU.Edge) })),
		NATS:   median(each(func(c cell) float64 { return c.perRequest(c.CPU.NATS) })),
		Worker: median(each(func(c cell) float64 { return c.perRequest(c.CPU.Worker) })),
		Ours:   median(each(func(c cell) float64 { return c.perRequest(c.CPU.ours()) })),
		Geth:   median(each(func(c cell) float64 { return c.perRequest(c.CPU.Geth) })),
		Echo:   median(each(func(c cell) float64 { return c.perRequest(c.CPU.Echo) })),
		Load:   median(each(func(c cell) float64 { return c.perRequest(c.CPU.Load) })),
	}
	if len(echo) == len(rounds) {
		r.RateToEcho = median(ratios(rounds, echo))
	}
	if r.Path == besideOf(r.Path) || len(geth) != len(rounds) {
		return r
	}
	var cpu []float64
	for i, c := range rounds {
		if g := geth[i].perRequest(geth[i].CPU.Geth); g > 0 {
			cpu = append(cpu, c.perRequest(c.CPU.ours())/g)
		}
	}
	r.RateToGeth, r.CPUToGeth = median(ratios(rounds, geth)), median(cpu)
	return r
}

// ratios divides the rates of each round.
func ratios(rounds, others []cell) (list []float64) {
	for i, c := range rounds {
		list = append(list, c.perSecond()/others[i].perSecond())
	}
	return list
}

// besideOf is geth's path that a path is compared with: the one that sends the same,
// and none for a yardstick.
func besideOf(path string) string {
	if path == pathBare || path == pathNetHTTP {
		return ""
	}
	if strings.HasSuffix(path, "-gzip") {
		return pathGethGzip
	}
	return pathGeth
}

// yardstickOf is what a path cannot or should at least reach: an echo on bare nbio
// without TLS, net/http with it. None is named for compressed answers and for itself.
func yardstickOf(path string) string {
	switch path {
	case pathHTTP, pathWS:
		return pathBare
	case pathHTTPS, pathWSS:
		return pathNetHTTP
	default:
		return ""
	}
}

func ofPath(cells []cell, path string) []cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Path != path })
}

// distinct returns the values in the order of their first appearance.
func distinct[T comparable](cells []cell, of func(cell) T) []T {
	var values []T
	for _, c := range cells {
		if v := of(c); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// median returns the middle of the values, the mean of the two in the middle of an
// even number, 0 of none.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(n-1)/2] + s[n/2]) / 2
}
