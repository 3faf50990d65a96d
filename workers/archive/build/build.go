package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ommer/ommer/workers/archive"
)

// Config says what to build. From and Out are required.
type Config struct {
	// From is an era1 file, a folder of them, or a URL: of an Ethereum node (http,
	// https, ws, wss), or of a folder of era1 files on a web server (http, https).
	// Which of the two it is, is found out by asking.
	From string
	// Out is the file to make. It must not exist.
	Out string
	// First and Last are the blocks to read from a node. Nil means the earliest that
	// it has, and the last from before the merge that is final.
	First, Last *uint64
	// Progress is told how far the build is after each piece. May be nil.
	Progress func(Progress)
}

// Progress is how far a build is.
type Progress struct {
	// Blocks is how many blocks have been read, those of former runs included, and
	// Total how many there are; of a web server's files it is an estimate.
	Blocks, Total uint64
	// Resumed is how many of the blocks are of former runs.
	Resumed uint64
	// Uncled is how many blocks with uncles this run has found.
	Uncled uint64
	// At is the last block read.
	At uint64
}

// Errors that a caller may want to tell from others.
var (
	// ErrExists: the file is there already.
	ErrExists = errors.New("exists already; remove it, or name another")
	// ErrSource: what is asked for cannot be had from this source.
	ErrSource = errors.New("no use as a source")
)

// piece is a part of the source that is read at one go.
type piece struct {
	name        string // for errors
	first, last uint64
	// load reads and verifies the piece. It may run beside that of others.
	load func(ctx context.Context) (*archive.Segment, error)
}

// source is where blocks come from.
type source interface {
	// pieces lists what is still to be read, in order, given what is done.
	pieces(ctx context.Context, done []archive.Range) (todo []piece, err error)
	// beside is how many pieces are worth reading at a time.
	beside() int
	close()
}

// Build makes the file. When ctx ends, or for any error, what was done is kept, and
// the next Build of the same file goes on from there.
func Build(ctx context.Context, c Config) error {
	if _, err := os.Lstat(c.Out); err == nil {
		return fmt.Errorf("%s %w", c.Out, ErrExists)
	}
	src, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer src.close()
	j, err := openJournal(c.Out + Suffix)
	if err != nil {
		return err
	}
	defer j.close()
	done := j.ranges()
	todo, err := src.pieces(ctx, done)
	if err != nil {
		return err
	}
	p := Progress{}
	for _, r := range done {
		p.Resumed += r.Blocks()
	}
	p.Blocks, p.Total = p.Resumed, p.Resumed
	for _, t := range todo {
		p.Total += t.last - t.first + 1
	}
	err = ordered(ctx, todo, src.beside(), func(t piece, s *archive.Segment) error {
		if err := j.append(s); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		p.Blocks += s.Blocks()
		p.Uncled += uint64(len(s.Uncled))
		p.At = s.Last
		if c.Progress != nil {
			c.Progress(p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := finish(ctx, j, c.Out); err != nil {
		return err
	}
	return j.remove()
}

// finish writes the file under another name and gives it its own when it is on the
// disk.
func finish(ctx context.Context, j *journal, out string) (err error) {
	f, err := os.OpenFile(out+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // it can be made again
		}
	}()
	err = archive.Write(ctx, f, j.segments())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	// Read it as those will who use it: once it has its name the journal goes.
	u, err := archive.OpenUncles(f.Name())
	if err != nil {
		return err
	}
	err = errors.Join(u.Verify(ctx), u.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(f.Name(), out); err != nil {
		return err
	}
	return syncDir(filepath.Dir(out))
}

// syncDir makes the names in a folder lasting.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // only read from
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// loaded is a piece once it was read.
type loaded struct {
	segment *archive.Segment
	err     error
}

// ordered loads pieces, a number of them at a time, and hands them to keep one by one
// in their order. It ends with the first error, and when nothing runs any more.
func ordered(ctx context.Context, todo []piece, beside int, keep func(piece, *archive.Segment) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var ahead []chan loaded // of todo[kept:]
	defer func() {
		cancel()
		for _, ch := range ahead {
			<-ch
		}
	}()
	for kept := range todo {
		for len(ahead) < beside && kept+len(ahead) < len(todo) {
			p, ch := todo[kept+len(ahead)], make(chan loaded, 1)
			ahead = append(ahead, ch)
			go func() {
				s, err := p.load(ctx)
				ch <- loaded{s, err}
			}()
		}
		l := <-ahead[0]
		ahead = ahead[1:]
		if l.err != nil {
			return l.err
		}
		if err := keep(todo[kept], l.segment); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// processors is how many pieces are read at a time where that is all computing.
func processors() int { return runtime.GOMAXPROCS(0) }
