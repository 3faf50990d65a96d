package certs

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// source is files that are read and taken together.
type source struct {
	paths []string
	// private says that users other than the owner and the group must not be able to
	// read the files. The group may: Kubernetes hands secrets to a process by it.
	private bool
	// take puts to use what the files hold, or returns why it cannot.
	take func(texts [][]byte) error

	seen, tried digest // of the last two looks: any, and the one that was taken or failed
}

type digest [sha256.Size]byte

// refresh looks at the files and takes them if they are new and were the same at
// the last look; with force whatever they hold. It says whether it has tried.
func (s *source) refresh(force bool) (tried bool, err error) {
	texts, err := s.read()
	now := summary(texts, err)
	settled := now == s.seen
	s.seen = now
	if !force && (now == s.tried || !settled) {
		return false, nil
	}
	s.tried = now
	if err == nil {
		err = s.take(texts)
	}
	return true, err
}

func (s *source) read() ([][]byte, error) {
	texts := make([][]byte, len(s.paths))
	for i, path := range s.paths {
		text, err := readFile(path, s.private)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return texts, nil
}

// maxFile bounds how much of a file is read, far above any certificate chain.
const maxFile = 1 << 20

func readFile(path string, private bool) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: opening a pipe waits for its writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("no regular file, which could be read again (%v)", info.Mode())}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); private && mode&0o007 != 0 {
		return nil, fmt.Errorf("%s is open to every user of this machine (mode %#o): chmod o= %s", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than %d bytes", maxFile)}
	}
	return text, err
}

// summary tells one outcome of reading from another.
func summary(texts [][]byte, err error) digest {
	if err != nil {
		return sha256.Sum256([]byte(err.Error()))
	}
	h := sha256.New()
	for _, text := range texts {
		_ = binary.Write(h, binary.BigEndian, int64(len(text))) // a hash takes everything
		h.Write(text)
	}
	return digest(h.Sum(nil))
}
