//go:build race

package edge_test

// raceEnabled: sync.Pool forgets on purpose then, so allocations say nothing.
const raceEnabled = true
