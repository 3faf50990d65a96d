//go:build !unix

package archive

import (
	"io"
	"os"
)

// mapFile reads the file at path into memory.
func mapFile(path string) ([]byte, io.Closer, error) {
	data, err := os.ReadFile(path)
	return data, io.NopCloser(nil), err
}
