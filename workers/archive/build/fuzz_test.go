package build

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/ommer/ommer/workers/archive"
)

// FuzzJournal opens journals that were altered: frames that are taken for whole ones
// can be read, and encode to what they were read from.
func FuzzJournal(f *testing.F) {
	path := filepath.Join(f.TempDir(), "x"+Suffix)
	j, err := openJournal(path)
	if err != nil {
		f.Fatal(err)
	}
	for n := range uint64(3) {
		s := new(archive.Segment)
		s.Range = archive.Range{First: 10 * n, Last: 10*n + 8}
		s.Uncled = []archive.Uncled{{Number: 10*n + 1, Hash: common.Hash{byte(n)}, List: []byte("list")}}
		if err := j.append(s); err != nil {
			f.Fatal(err)
		}
	}
	j.close()
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
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
