package build

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/ommer/ommer/workers/archive"
)

// files are era1 files on this machine.
type files struct {
	paths []string
}

func openFiles(path string) (source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return files{[]string{path}}, nil
	}
	paths, err := archive.Files(path, archive.Era1Suffix)
	if err != nil {
		return nil, err
	}
	return files{paths}, nil
}

func (s files) pieces(_ context.Context, done []archive.Range) ([]piece, error) {
	var all []piece
	for _, path := range s.paths {
		e, err := archive.Open(path)
		if err != nil {
			return nil, err
		}
		first, count := e.Start(), uint64(e.Count())
		_ = e.Close() // only read from
		all = append(all, piece{
			name: path, first: first, last: first + count - 1,
			load: func(ctx context.Context) (*archive.Segment, error) { return readEra1(ctx, path) },
		})
	}
	return unread(all, done)
}

func readEra1(ctx context.Context, path string) (*archive.Segment, error) {
	e, err := archive.Open(path)
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // only read from
	return e.Segment(ctx)
}

// unread leaves out the files that are done, by their first blocks: where a file ends
// may be a guess. What is done has to begin where one of these files does.
func unread(all []piece, done []archive.Range) (todo []piece, err error) {
	slices.SortStableFunc(all, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(all); i++ {
		if all[i].first <= all[i-1].last {
			return nil, fmt.Errorf("%w: %s and %s both hold block %d", ErrSource, all[i-1].name, all[i].name, all[i].first)
		}
	}
	for _, r := range done {
		if !slices.ContainsFunc(all, func(p piece) bool { return p.first == r.First }) {
			return nil, errElse(r)
		}
	}
	for _, p := range all {
		if !slices.ContainsFunc(done, func(r archive.Range) bool { return r.First <= p.first && p.first <= r.Last }) {
			todo = append(todo, p)
		}
	}
	return todo, nil
}

func errElse(r archive.Range) error {
	return fmt.Errorf("%w: the build so far has blocks %d to %d, which it does not have like this; remove the %s file to begin anew",
		ErrSource, r.First, r.Last, Suffix)
}

func (files) beside() int { return processors() }

func (files) close() {}
