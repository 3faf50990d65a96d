package main

import (
	"os"
	"path/filepath"
	"runtime"
)

// dataDir is where the user's programs keep their data: XDG_DATA_HOME where it is
// set, else the system's habit.
func dataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "ommer")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "ommer")
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "ommer")
	}
	return filepath.Join(home, ".local", "share", "ommer")
}
