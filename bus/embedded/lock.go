//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockDir makes the folder of a store and takes it for this process: two servers
// on one store would destroy it, and NATS does not look.
func lockDir(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	// Opening the file for writing also finds a folder that is read-only.
	f, err := os.OpenFile(filepath.Join(dir, "ommer.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: cannot be written: %w", ErrStore, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is in use by another process", ErrStore, dir)
		}
		return nil, fmt.Errorf("%w: locking %s: %w", ErrStore, dir, err)
	}
	return f, nil
}
