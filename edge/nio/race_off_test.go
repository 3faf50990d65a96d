//go:build !race

package nio

const raceEnabled = false
