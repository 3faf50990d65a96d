package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ommer/ommer/deploy/child"
)

// idleMemory is what connections of one kind cost the edge when nothing happens on
// them.
type idleMemory struct {
	Path    string `json:"path"`
	Conns   int    `json:"conns"`
	Before  int64  `json:"before_bytes"` // resident memory of the edge
	After   int64  `json:"after_bytes"`
	Settled bool   `json:"settled"` // both readings came to rest
}

func (m idleMemory) perConn() float64 { return float64(m.After-m.Before) / float64(m.Conns) }

// idlePaths are the kinds of connections, the cheap ones first.
var idlePaths = []string{pathWS, pathHTTP, pathWSS, pathHTTPS}

// measureIdle measures each kind with an edge of its own.
func measureIdle(ctx context.Context, conns int, s *stack, progress func(string, ...any)) ([]idleMemory, error) {
	var list []idleMemory
	for _, path := range idlePaths {
		m, err := s.idle(ctx, path, conns)
		if err != nil {
			return nil, fmt.Errorf("%d idle connections of %s: %w", conns, path, err)
		}
		list = append(list, m)
		progress("%5d idle connections: %-5s %7.0f bytes each", conns, path, m.perConn())
	}
	return list, nil
}

// What an edge is asked before its memory is read for the first time, so that what
// it allocates once is not put down to the connections.
const (
	exerciseConns = 64
	exerciseFor   = time.Second
)

func (s *stack) idle(ctx context.Context, path string, conns int) (m idleMemory, err error) {
	m = idleMemory{Path: path, Conns: conns}
	const untouched = "30m" // longer than this takes
	err = s.newEdge(ctx, "--timeout-idle", untouched, "--timeout-ping", untouched,
		"--limit-conns", fmt.Sprint(conns+spareFiles/2))
	if err != nil {
		return m, err
	}
	if _, err = s.measure(ctx, path, exerciseConns, exerciseFor); err != nil {
		return m, err
	}
	var before, after bool
	if m.Before, before, err = settle(ctx, settleReadings, s.edge); err != nil {
		return m, err
	}
	c, err := startCrowd(ctx, []holding{{Endpoint: s.endpoint(path), Questions: s.questions, Conns: conns}}, func(int) {})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if m.After, after, err = settle(ctx, settleReadings, s.edge); err != nil {
		return m, err
	}
	m.Settled = before && after
	return m, nil
}

// When memory counts as at rest: settleReadings in a row differ by no more than
// settleWithin bytes for each process. After settleAtMost the last one is taken. A
// process gives memory back when it was quiet for some seconds (bus/process/heap.go),
// so that looking for less than those would find it before that.
const (
	settlePoll     = 200 * time.Millisecond
	settleReadings = 45
	settleWithin   = 128 << 10
	settleAtMost   = time.Minute
)

// settle waits until the memory of processes, taken together, is at rest.
func settle(ctx context.Context, readings int, processes ...*child.Process) (rss int64, settled bool, err error) {
	var last []int64
	for end := time.Now().Add(settleAtMost); ; {
		var n int64
		for _, p := range processes {
			one, err := child.RSS(p.PID())
			if err != nil {
				return 0, false, err
			}
			n += one
		}
		if last = append(last, n); len(last) > readings {
			last = last[1:]
		}
		switch {
		case len(last) == readings && slices.Max(last)-slices.Min(last) <= int64(len(processes))*settleWithin:
			return n, true, nil
		case time.Now().After(end):
			return n, false, nil
		case !pause(ctx, settlePoll):
			return 0, false, ctx.Err()
		}
	}
}
