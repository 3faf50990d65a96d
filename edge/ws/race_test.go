//go:build race

package ws_test

// raceEnabled says that this is a build with the race detector.
const raceEnabled = true
