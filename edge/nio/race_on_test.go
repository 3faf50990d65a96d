//go:build race

package nio

// raceEnabled: sync.Pool forgets on purpose then, so allocations say nothing.
const raceEnabled = true
