package snapshot

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ommer/ommer/schema"
)

// What is wrong with a file that is refused.
var (
	ErrFormat    = errors.New("it is no snapshot")
	ErrChain     = errors.New("it is of another chain")
	ErrTruncated = errors.New("its end is missing")
	ErrAltered   = errors.New("it was altered, its SHA-256 is another")
)

// MaxBlocks is how many blocks a file holds at most. To ask for so many takes minutes,
// and the last of them are worth little.
const MaxBlocks = 1 << 18

// Snapshot is what a file says.
type Snapshot struct {
	Chain  uint64            // its ID
	Blocks []schema.Selector // by number or hash, the one that is worth most first
}

const (
	start = "ommer snapshot 1 chain " // and the chain ID
	end   = "sha256 "                 // and the digest

	lineSize = len("0x\n") + 2*len(schema.Hash{}) // at most, of a block
	headSize = len(start) + len("18446744073709551615\n")
	tailSize = len(end) + 2*sha256.Size + len("\n")
	maxSize  = headSize + MaxBlocks*lineSize + tailSize
)

// CheckPath returns an error that wraps ErrFormat when there is something else at the path
// than a snapshot, or than the beginning of one: it is not to be overwritten.
func CheckPath(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from
	const kind = "ommer snapshot "
	head := make([]byte, len(kind))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if !strings.HasPrefix(kind, string(head[:n])) {
		return fmt.Errorf("%s: %w, and is not overwritten; name another file, or remove it", path, ErrFormat)
	}
	return nil
}

// Write writes a file, in place of the one that is there. It can be read by its owner
// only: it tells what callers have asked for.
func Write(path string, s Snapshot) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // which it may be
			_ = os.Remove(f.Name())
		}
	}()
	if err := encode(f, s); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func encode(to io.Writer, s Snapshot) error {
	digest := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(to, digest), 1<<16)
	fmt.Fprintf(w, "%s%d\n", start, s.Chain)
	for _, b := range s.Blocks[:min(len(s.Blocks), MaxBlocks)] {
		w.WriteString(b.String()) //nolint:errcheck // Flush tells of it
		w.WriteByte('\n')         //nolint:errcheck // Flush tells of it
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "%s%x\n", end, digest.Sum(nil))
	return err
}

// Read reads a file of a chain. An error that is not of the system says with one of those
// above what is wrong with the file.
func Read(path string, chain uint64) ([]schema.Selector, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	b, err := io.ReadAll(io.LimitReader(f, int64(maxSize)+1))
	if err != nil {
		return nil, err
	}
	s, err := decode(b)
	if err != nil {
		return nil, err
	}
	if s.Chain != chain {
		return nil, fmt.Errorf("%w: %d, the one here is %d", ErrChain, s.Chain, chain)
	}
	return s.Blocks, nil
}

// decode takes what encode makes, and nothing else.
func decode(b []byte) (s Snapshot, err error) {
	if n := min(len(b), len(start)); string(b[:n]) != start[:n] {
		return s, fmt.Errorf("%w of version 1", ErrFormat)
	}
	if len(b) > maxSize {
		return s, fmt.Errorf("%w: more than %d bytes", ErrFormat, maxSize)
	}
	at := len(b) - tailSize
	if at < len(start) || string(b[at:at+len(end)]) != end || b[len(b)-1] != '\n' || b[at-1] != '\n' {
		return s, ErrTruncated
	}
	lines, said := string(b[:at]), string(b[at+len(end):len(b)-1])
	if digest := sha256.Sum256(b[:at]); said != hex.EncodeToString(digest[:]) {
		return s, ErrAltered
	}
	number := 0
	for line := range splitLines(lines) {
		if number++; number == 1 {
			s.Chain, err = strconv.ParseUint(line[len(start):], 10, 64)
			if err != nil || strconv.FormatUint(s.Chain, 10) != line[len(start):] {
				return s, fmt.Errorf("%w: line 1 has no chain ID", ErrFormat)
			}
			s.Blocks = make([]schema.Selector, 0, min(len(b)/len("0x0\n"), MaxBlocks))
			continue
		}
		block, ok := parse(line)
		if !ok || len(s.Blocks) == MaxBlocks {
			return s, fmt.Errorf("%w: line %d has no block, or one too many", ErrFormat, number)
		}
		s.Blocks = append(s.Blocks, block)
	}
	return s, nil
}
