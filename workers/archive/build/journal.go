package build

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/ommer/ommer/workers/archive"
)

// Suffix is what the name of the journal of a build has behind that of the file.
const Suffix = ".part"

// A journal is a file of segments, each written once and for all. Integers are
// little-endian.
//
//	"ommer\x00j\x01"
//	frames: 4 length of the segment, 4 its CRC-32C, the segment:
//	    8 first block, 8 last block, 32 parent of the first, 32 hash of the last,
//	    8 chain ID, 32 genesis, and for each block that has uncles:
//	    8 number, 32 hash, 4 length of the list, the list
//
// A frame that was not written to its end is cut off when the journal is opened.
type journal struct {
	f      *os.File
	frames []frame // as they stand in the file
	size   int64   // where the next frame goes
	chain  archive.Chain
}

type frame struct {
	archive.Range
	off  int64 // of the segment
	size int
}

const (
	journalMagic = "ommer\x00j\x01"
	frameHead    = 8
	segmentHead  = 120
	uncledHead   = 44
	// maxSegment bounds a segment: 8192 blocks of main net have about 1 MB of uncles.
	maxSegment = 256 << 20
)

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// openJournal opens or makes a journal and takes it for this process.
func openJournal(path string) (_ *journal, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // nothing was written
		}
	}()
	if err := lock(f); err != nil {
		return nil, err
	}
	j := &journal{f: f}
	if err := j.recover(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

// recover finds the frames that are whole and cuts off what is behind them.
func (j *journal) recover() error {
	st, err := j.f.Stat()
	if err != nil {
		return err
	}
	magic := make([]byte, len(journalMagic))
	n, err := j.f.ReadAt(magic, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(magic[:n]) != journalMagic[:n] {
		return errors.New("it is not of a build by this version; remove it to begin anew")
	}
	if n < len(magic) {
		if _, err := j.f.WriteAt([]byte(journalMagic), 0); err != nil {
			return err
		}
	}
	j.size = int64(len(journalMagic))
	r := bufio.NewReaderSize(io.NewSectionReader(j.f, j.size, st.Size()), 1<<20)
	var head [frameHead]byte
	var segment []byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			break // cutting off says whether the file can be used
		}
		n := int64(le.Uint32(head[:]))
		if n < segmentHead || n > maxSegment || n > st.Size()-j.size-frameHead {
			break
		}
		segment = slices.Grow(segment[:0], int(n))[:n]
		if _, err := io.ReadFull(r, segment); err != nil || crc32.Checksum(segment, castagnoli) != le.Uint32(head[4:]) {
			break
		}
		s, err := parseSegment(segment)
		if err != nil {
			return err
		}
		if j.chain, err = j.chain.Join(s.Chain); err != nil {
			return err
		}
		j.framed(s.Range, int(n))
	}
	return j.f.Truncate(j.size)
}

func (j *journal) framed(r archive.Range, n int) {
	j.frames = append(j.frames, frame{r, j.size + frameHead, n})
	j.size += frameHead + int64(n)
}

// append adds a segment, once it is known to fit to its neighbours, and waits until
// it is on the disk.
func (j *journal) append(s *archive.Segment) error {
	chain, err := j.chain.Join(s.Chain)
	if err != nil {
		return err
	}
	for _, f := range j.frames {
		switch {
		case f.Last >= s.First && s.Last >= f.First:
			return fmt.Errorf("%w: blocks %d to %d are in %s already", archive.ErrChain, f.First, f.Last, j.f.Name())
		case f.Last+1 == s.First && f.Hash != s.Parent:
			return fmt.Errorf("%w: the parent of block %d is %v, want %v", archive.ErrChain, s.First, s.Parent, f.Hash)
		case s.Last+1 == f.First && s.Hash != f.Parent:
			return fmt.Errorf("%w: block %d is %v, want %v, the parent of the next", archive.ErrChain, s.Last, s.Hash, f.Parent)
		}
	}
	b := appendSegment(make([]byte, frameHead), s)
	n := len(b) - frameHead
	if n > maxSegment {
		return fmt.Errorf("%w: %d bytes of uncles in blocks %d to %d, the limit is %d", archive.ErrChain, n, s.First, s.Last, maxSegment)
	}
	le.PutUint32(b, uint32(n))
	le.PutUint32(b[4:], crc32.Checksum(b[frameHead:], castagnoli))
	if _, err := j.f.WriteAt(b, j.size); err != nil {
		// What was written of it is cut off when the journal is opened again.
		return err
	}
	if err := j.f.Sync(); err != nil {
		return err
	}
	j.framed(s.Range, n)
	j.chain = chain
	return nil
}

// sorted are the frames by number.
func (j *journal) sorted() []frame {
	return slices.SortedFunc(slices.Values(j.frames), func(a, b frame) int { return cmp.Compare(a.First, b.First) })
}

// ranges are the blocks that are done, by number, those that meet as one.
func (j *journal) ranges() (done []archive.Range) {
	for _, f := range j.sorted() {
		if n := len(done); n > 0 && done[n-1].Last+1 == f.First {
			done[n-1].Last, done[n-1].Hash = f.Last, f.Hash
		} else {
			done = append(done, f.Range)
		}
	}
	return done
}

// segments reads all segments, by number.
func (j *journal) segments() iter.Seq2[*archive.Segment, error] {
	return func(yield func(*archive.Segment, error) bool) {
		for _, f := range j.sorted() {
			b := make([]byte, f.size)
			_, err := j.f.ReadAt(b, f.off)
			var s *archive.Segment
			if err == nil {
				s, err = parseSegment(b)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// close leaves the journal for the next build, unless there is nothing in it.
func (j *journal) close() {
	if len(j.frames) == 0 {
		_ = os.Remove(j.f.Name()) // the next build makes it again
	}
	_ = j.f.Close() // what counts was synced
}

// remove ends the journal.
func (j *journal) remove() error { return os.Remove(j.f.Name()) }

func appendSegment(b []byte, s *archive.Segment) []byte {
	b = le.AppendUint64(b, s.First)
	b = le.AppendUint64(b, s.Last)
	b = append(b, s.Parent[:]...)
	b = append(b, s.Hash[:]...)
	b = le.AppendUint64(b, s.Chain.ID)
	b = append(b, s.Chain.Genesis[:]...)
	for _, u := range s.Uncled {
		b = le.AppendUint64(b, u.Number)
		b = append(b, u.Hash[:]...)
		b = le.AppendUint32(b, uint32(len(u.List)))
		b = append(b, u.List...)
	}
	return b
}

var errSegment = errors.New("a segment that cannot be read; remove the file to begin anew")

func parseSegment(b []byte) (*archive.Segment, error) {
	if len(b) < segmentHead {
		return nil, errSegment
	}
	s := &archive.Segment{
		Range: archive.Range{First: le.Uint64(b), Last: le.Uint64(b[8:]), Parent: common.Hash(b[16:48]), Hash: common.Hash(b[48:80])},
		Chain: archive.Chain{ID: le.Uint64(b[80:]), Genesis: common.Hash(b[88:120])},
	}
	for b = b[segmentHead:]; len(b) > 0; {
		if len(b) < uncledHead {
			return nil, errSegment
		}
		u := archive.Uncled{Number: le.Uint64(b), Hash: common.Hash(b[8:40])}
		n := int64(le.Uint32(b[40:]))
		if b = b[uncledHead:]; n > int64(len(b)) {
			return nil, errSegment
		}
		u.List, b = b[:n:n], b[n:]
		s.Uncled = append(s.Uncled, u)
	}
	return s, nil
}
