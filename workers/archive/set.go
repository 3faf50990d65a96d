package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// maxEra1 is how many era1 files a Set reads into memory. It takes about 0.2 s for
// each; whoever has more builds an uncles file of them.
const maxEra1 = 64

// Names of files that OpenSet takes from a folder.
const (
	UnclesSuffix = ".uncles"
	Era1Suffix   = ".era1"
)

// Set answers from several files as from one.
type Set struct {
	files  []*Uncles
	chain  Chain
	blocks uint64
}

// OpenSet opens uncles files and era1 files of one chain, or folders of them, named
// *.uncles and *.era1. Era1 files are verified, and what lookups need of them is
// kept in memory. Logger may be nil.
func OpenSet(ctx context.Context, paths []string, logger *slog.Logger) (_ *Set, err error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	paths, err = unfold(paths)
	if err != nil {
		return nil, err
	}
	s, era1 := new(Set), 0
	defer func() {
		if err != nil {
			_ = s.Close() // only read from
		}
	}()
	for _, path := range paths {
		begun := time.Now()
		u, err := open(ctx, path, &era1)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, u)
		if s.chain, err = s.chain.Join(u.Chain()); err != nil {
			return nil, fmt.Errorf("archive: %s: %w", path, err)
		}
		logger.Info("archive opened", "file", path, "chain_id", u.Chain().ID, "first", u.ranges[0].First,
			"last", u.ranges[len(u.ranges)-1].Last, "blocks", u.Blocks(), "uncles", u.Count(), "took", time.Since(begun).Round(time.Millisecond))
	}
	s.blocks = covered(s.files)
	return s, nil
}

// unfold puts the files of folders in the place of the folders.
func unfold(paths []string) (files []string, err error) {
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("archive: %w", err)
		}
		if !st.IsDir() {
			files = append(files, path)
			continue
		}
		found, err := Files(path, UnclesSuffix, Era1Suffix)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// Files lists the files of a folder that have one of the suffixes, by name. There is
// at least one.
func Files(dir string, suffixes ...string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() && slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(e.Name(), s) }) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("archive: %s holds no *%s", dir, strings.Join(suffixes, " or *"))
	}
	return files, nil
}

// open opens a file of either format. era1 counts those of the other one.
func open(ctx context.Context, path string, era1 *int) (*Uncles, error) {
	is, err := IsUncles(path)
	if err != nil {
		return nil, err
	}
	if is {
		return OpenUncles(path)
	}
	if *era1++; *era1 > maxEra1 {
		return nil, fmt.Errorf("archive: more than %d era1 files: build one file of them with `ommer archive build`", maxEra1)
	}
	e, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // only read from
	segment, err := e.Segment(ctx)
	if err != nil {
		return nil, err
	}
	var w memory
	err = Write(ctx, &w, func(yield func(*Segment, error) bool) { yield(segment, nil) })
	if err != nil {
		return nil, fmt.Errorf("archive: %s: %w", path, err)
	}
	return newUncles(path, w.data)
}

// IsUncles reports whether the file at path is an uncles file, by how it begins.
func IsUncles(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("archive: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	var magic [len(unclesMagic)]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("archive: %w", err)
	}
	return isUncles(magic[:]), nil
}

// memory is a file in memory.
type memory struct {
	data []byte
	at   int
}

// Write writes where the last Write or Seek has ended.
func (m *memory) Write(b []byte) (int, error) {
	if more := m.at + len(b) - len(m.data); more > 0 {
		m.data = append(m.data, make([]byte, more)...)
	}
	m.at += copy(m.data[m.at:], b)
	return len(b), nil
}

// Seek sets where to write, from the start.
func (m *memory) Seek(off int64, whence int) (int64, error) {
	if whence != io.SeekStart {
		return 0, errors.ErrUnsupported
	}
	m.at = int(off)
	return off, nil
}

// covered counts the blocks that the files hold between them.
func covered(files []*Uncles) (n uint64) {
	var all []Range
	for _, u := range files {
		all = append(all, u.ranges...)
	}
	slices.SortFunc(all, func(a, b Range) int {
		if a.First < b.First {
			return -1
		}
		return 1
	})
	next := uint64(0) // the least number not counted
	for _, r := range all {
		if r.Last >= next {
			n += r.Last - max(r.First, next) + 1
			next = r.Last + 1
		}
	}
	return n
}

// ByNumber asks the files in turn, see Uncles.ByNumber.
func (s *Set) ByNumber(dst []byte, n uint64) (list []byte, held bool, err error) {
	for _, u := range s.files {
		if u.Covers(n) {
			return u.ByNumber(dst, n)
		}
	}
	return dst, false, nil
}

// ByHash asks the files in turn, see Uncles.ByHash.
func (s *Set) ByHash(dst []byte, h common.Hash) (list []byte, held bool, err error) {
	for _, u := range s.files {
		if list, held, err = u.ByHash(dst, h); held || err != nil {
			return list, held, err
		}
	}
	return dst, false, nil
}

// Chain is the chain that the blocks are of.
func (s *Set) Chain() Chain { return s.chain }

// Blocks is how many blocks the files cover between them.
func (s *Set) Blocks() uint64 { return s.blocks }

// Uncled is the number of a block that has uncles, false when none has.
func (s *Set) Uncled() (number uint64, ok bool) {
	for _, u := range s.files {
		if u.count() > 0 {
			err := u.readable(func() error { number = u.place(0).number; return nil })
			return number, err == nil
		}
	}
	return 0, false
}

// Count is how many uncles the files hold; those that two files hold count twice.
func (s *Set) Count() (n uint64) {
	for _, u := range s.files {
		n += u.Count()
	}
	return n
}

// Size is how many bytes the files have.
func (s *Set) Size() (n int64) {
	for _, u := range s.files {
		n += u.Size()
	}
	return n
}

// Close closes the files. No method may be running or be called afterwards.
func (s *Set) Close() error {
	var errs []error
	for _, u := range s.files {
		errs = append(errs, u.Close())
	}
	return errors.Join(errs...)
}
