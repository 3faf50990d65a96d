package archive

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// TestSet opens files and folders of either format.
func TestSet(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"a.uncles": uncles(t, segment(t, 0, 9)), "b.uncles": uncles(t, segment(t, 5, 29)), "c.era1": small(40), "notes.txt": nil,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := must[*Set](t)(OpenSet(t.Context(), []string{dir, filepath.Join(dir, "a.uncles")}, nil))
	defer s.Close()
	if len(s.files) != 4 || s.Blocks() != 40 {
		t.Errorf("%d files, %d blocks, want 4 and 40", len(s.files), s.Blocks())
	}
	for _, b := range segment(t, 0, 39).Uncled {
		byNumber, held1, err1 := s.ByNumber(nil, b.Number)
		byHash, held2, err2 := s.ByHash(nil, b.Hash)
		if err := errors.Join(err1, err2); err != nil || !held1 || !held2 || !bytes.Equal(byNumber, b.List) || !bytes.Equal(byHash, b.List) {
			t.Errorf("block %d: %v %v %v", b.Number, held1, held2, err)
		}
		if uncles, err := DecodeUncles(byHash); err != nil || types.CalcUncleHash(uncles) != crypto.Keccak256Hash(b.List) {
			t.Errorf("block %d: %v", b.Number, err)
		}
	}
	if _, held, err := s.ByNumber(nil, 40); held || err != nil {
		t.Errorf("block 40: %v %v", held, err)
	}

	for name, paths := range map[string][]string{
		"no such file": {filepath.Join(dir, "d.uncles")}, "no archive": {filepath.Join(dir, "notes.txt")}, "empty folder": {t.TempDir()},
		"another chain": {filepath.Join(dir, "a.uncles"), sepolia(t, sepolia00)},
	} {
		if s, err := OpenSet(t.Context(), paths, nil); err == nil {
			s.Close()
			t.Errorf("%s: opened", name)
		}
	}
}
