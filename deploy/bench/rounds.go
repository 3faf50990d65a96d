package main

import (
	"context"
	"slices"
)

// measureRequests measures every path in every round.
func measureRequests(ctx context.Context, c config, s *stack, progress func(string, ...any)) ([]cell, error) {
	paths := slices.DeleteFunc(slices.Clone(pathNames), func(p string) bool { return !slices.Contains(c.only, p) })
	var cells []cell
	for _, conns := range c.conns {
		for round := range c.rounds {
			for _, path := range turned(paths, round) {
				m, err := s.measure(ctx, path, conns, c.duration)
				if err != nil {
					return nil, err
				}
				cells = append(cells, m)
				progress("%5d connections, round %d of %d: %-5s %7.0f requests/s", conns, round+1, c.rounds, path, m.perSecond())
			}
		}
	}
	return cells, nil
}

// turned begins with a later element each time, so that no path always follows the
// same one or always comes first.
func turned(paths []string, by int) []string {
	if len(paths) == 0 {
		return nil
	}
	k := by % len(paths)
	return slices.Concat(paths[k:], paths[:k])
}
