package build

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/ommer/ommer/workers/archive"
)

// threeSegments returns a journal of segments that do not come in the order of their
// numbers.
func threeSegments(tb testing.TB) (path string, content []byte) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "x"+Suffix)
	j, err := openJournal(path)
	if err != nil {
		tb.Fatal(err)
	}
	for _, n := range []uint64{0, 200, 100} {
		s := &archive.Segment{
			Range:  archive.Range{First: n, Last: n + 80, Hash: common.Hash{byte(n)}},
			Chain:  archive.Chain{ID: 7},
			Uncled: []archive.Uncled{{Number: n + 1, Hash: common.Hash{byte(n)}, List: []byte("list")}, {Number: n + 3, List: bytes.Repeat([]byte{9}, 300)}},
		}
		if err := j.append(s); err != nil {
			tb.Fatal(err)
		}
	}
	j.close()
	if content, err = os.ReadFile(path); err != nil {
		tb.Fatal(err)
	}
	return path, content
}

// firsts are the first blocks of the segments in a journal, as it yields them.
func firsts(t *testing.T, j *journal) (list []uint64) {
	t.Helper()
	for s, err := range j.segments() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s.First)
	}
	return list
}

func TestJournal(t *testing.T) {
	path, _ := threeSegments(t)
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	if got := firsts(t, j); !slices.Equal(got, []uint64{0, 100, 200}) || j.chain.ID != 7 {
		t.Errorf("segments from %v of chain %d", got, j.chain.ID)
	}
	for name, s := range map[string]*archive.Segment{
		"there already":         {Range: archive.Range{First: 80, Last: 90}},
		"of another chain":      {Range: archive.Range{First: 300, Last: 310}, Chain: archive.Chain{ID: 8}},
		"not behind the last":   {Range: archive.Range{First: 281, Last: 290, Parent: common.Hash{1}}},
		"not before the second": {Range: archive.Range{First: 90, Last: 99, Hash: common.Hash{1}}},
	} {
		if err := j.append(s); err == nil {
			t.Errorf("a segment that is %s was taken", name)
		}
	}
	if len(j.frames) != 3 {
		t.Errorf("%d segments, want 3", len(j.frames))
	}
}

// TestJournalAltered flips each byte of the last segment: it is cut off, and nothing
// else.
func TestJournalAltered(t *testing.T) {
	path, whole := threeSegments(t)
	begin := len(journalMagic) + (len(whole)-len(journalMagic))/3*2
	for at := begin; at < len(whole); at++ {
		altered := bytes.Clone(whole)
		altered[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, altered, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := openJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := firsts(t, j); !slices.Equal(got, []uint64{0, 200}) || j.size != int64(begin) {
			t.Fatalf("byte %d: segments from %v in %d bytes are left", at, got, j.size)
		}
		j.close()
	}
}

// FuzzJournal opens journals that were altered: frames that are taken for whole ones
// can be read, and encode to what they were read from.
func FuzzJournal(f *testing.F) {
	_, whole := threeSegments(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Add([]byte(journalMagic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x"+Suffix)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := openJournal(path)
		if err != nil {
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, data) {
				t.Errorf("a file that is refused was altered, %v", err)
			}
			return
		}
		defer j.close()
		n := 0
		for s, err := range j.segments() {
			if err != nil {
				t.Fatal(err)
			}
			frame := j.sorted()[n]
			if again := appendSegment(nil, s); !bytes.Equal(again, data[frame.off:frame.off+int64(frame.size)]) {
				t.Errorf("a segment encodes to %x", again)
			}
			n++
		}
		if st, err := os.Stat(path); err != nil || st.Size() != j.size || n != len(j.frames) {
			t.Errorf("%d bytes and %d segments are left, want %d and %d; %v", st.Size(), n, j.size, len(j.frames), err)
		}
	})
}
