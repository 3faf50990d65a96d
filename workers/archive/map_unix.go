//go:build unix

package archive

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the file at path into memory, to be read.
func mapFile(path string) ([]byte, io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // only read from; the mapping stays
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !st.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s: not a regular file", path)
	case st.Size() == 0:
		return nil, nil, fmt.Errorf("%s: %w", path, damaged(0, "the file is empty"))
	case st.Size() > math.MaxInt:
		return nil, nil, fmt.Errorf("%s: %w", path, errors.ErrUnsupported)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map %s: %w", path, err)
	}
	return data, mapping(data), nil
}

type mapping []byte

// Close gives the mapping back.
func (m mapping) Close() error { return unix.Munmap(m) }
