package load

import (
	"fmt"
	"syscall"
)

// spareFiles is how many files a process needs beside its connections.
const spareFiles = 64

// CheckFiles says early that this process cannot open so many connections.
func CheckFiles(connections int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("how many files a process may open: %w", err)
	}
	// Go has raised the soft limit to the hard one.
	if uint64(connections)+spareFiles > limit.Max {
		return fmt.Errorf("%d connections are too many: this process may open %d files (ulimit -Hn), and needs %d beside them",
			connections, limit.Max, spareFiles)
	}
	return nil
}
