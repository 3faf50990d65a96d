//go:build race

package workers

// raceEnabled says that sync.Pool drops values at random, so that allocations mean
// nothing.
const raceEnabled = true
