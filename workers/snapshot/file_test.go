package snapshot

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ommer/ommer/schema"
)

const sepolia = 11155111

// some returns a snapshot of n blocks.
func some(n int) Snapshot {
	s := Snapshot{Chain: sepolia}
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range n {
		if i%2 == 0 {
			s.Blocks = append(s.Blocks, schema.Number(r.Uint64()>>(1+r.UintN(63))))
			continue
		}
		var h schema.Hash
		for j := range h {
			h[j] = byte(r.Uint32())
		}
		s.Blocks = append(s.Blocks, schema.BlockHash(h))
	}
	return s
}

func encoded(t testing.TB, s Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// digestLine is the last line of a file with these lines before it.
func digestLine(lines string) string { return fmt.Sprintf("%s%x\n", end, sha256.Sum256([]byte(lines))) }

// files lists what is beside a file, and it.
func files(t *testing.T, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hot")
	for _, n := range []int{0, 1, 2, 1000, MaxBlocks, MaxBlocks + 1} {
		want := some(n)
		if err := Write(path, want); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path, sepolia)
		if err != nil {
			t.Fatalf("%d blocks: %v", n, err)
		}
		if !slices.Equal(got, want.Blocks[:min(n, MaxBlocks)]) {
			t.Errorf("of %d blocks %d are read, or others", n, len(got))
		}
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v", st.Mode())
	}
	if got := files(t, path); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

func TestRefused(t *testing.T) {
	good := string(encoded(t, some(6)))
	sealed := func(lines string) string { return lines + digestLine(lines) }
	head := start + "1\n"
	for _, tt := range []struct {
		name, file string
		want       error
	}{
		{"empty", "", ErrTruncated},
		{"something else", "{}", ErrFormat},
		{"another version", strings.Replace(good, "snapshot 1", "snapshot 2", 1), ErrFormat},
		{"another chain", string(encoded(t, Snapshot{Chain: 1})), ErrChain},
		{"a byte less", good[:len(good)-1], ErrTruncated},
		{"a line more", good + "0x1\n", ErrTruncated},
		{"another digit", strings.Replace(good, "chain 1", "chain 2", 1), ErrAltered},
		{"no chain", sealed(start + "\n"), ErrFormat},
		{"a chain of 65 bits", sealed(start + "18446744073709551616\n"), ErrFormat},
		{"a chain with a zero", sealed(start + "01\n"), ErrFormat},
		{"no block", sealed(head + "latest\n"), ErrFormat},
		{"an empty line", sealed(head + "\n"), ErrFormat},
		{"a leading zero", sealed(head + "0x01\n"), ErrFormat},
		{"upper case", sealed(head + "0xA\n"), ErrFormat},
		{"a number of 64 bits", sealed(head + "0x8000000000000000\n"), ErrFormat},
		{"a sign", sealed(head + "0x+1\n"), ErrFormat},
		{"too many blocks", sealed(head + strings.Repeat("0x1\n", MaxBlocks+1)), ErrFormat},
		{"too long", strings.Repeat(good, maxSize/len(good)+1), ErrFormat},
	} {
		path := filepath.Join(t.TempDir(), "hot")
		if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path, sepolia); !errors.Is(err, tt.want) || got != nil {
			t.Errorf("%s: %d blocks, %v; want %v", tt.name, len(got), err, tt.want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none"), 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

// TestDamage cuts a file at every byte and turns every bit.
func TestDamage(t *testing.T) {
	good := encoded(t, some(5))
	for n := range good {
		if _, err := decode(good[:n]); !errors.Is(err, ErrTruncated) {
			t.Errorf("the first %d of %d bytes: %v, want %v", n, len(good), err, ErrTruncated)
		}
		for bit := range 8 {
			b := bytes.Clone(good)
			b[n] ^= 1 << bit
			if _, err := decode(b); err == nil {
				t.Errorf("bit %d of byte %d can be turned", bit, n)
			}
		}
	}
}

// TestTwoWriters has two write the same file again and again, while it is read.
func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hot")
	if err := Write(path, some(0)); err != nil {
		t.Fatal(err)
	}
	sizes := []int{300, 5000}
	var writers sync.WaitGroup
	for _, n := range sizes {
		writers.Go(func() {
			for range 20 {
				if err := Write(path, some(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { writers.Wait(); close(over) }()
	for done := false; !done; {
		select {
		case <-over:
			done = true
		default:
		}
		got, err := Read(path, sepolia)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(append(sizes, 0), len(got)) || !slices.Equal(got, some(len(got)).Blocks) {
			t.Fatalf("%d blocks that nobody has written", len(got))
		}
	}
	if got := files(t, path); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

// FuzzDecode holds that there is one file for a snapshot.
func FuzzDecode(f *testing.F) {
	for n := range 4 {
		f.Add(encoded(f, some(n)), false)
		f.Add([]byte(start+fmt.Sprint(n)+"\n0x1\n0x29c\n"), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal { // or else few would get past the digest
			b = append(bytes.Clone(b), digestLine(string(b))...)
		}
		s, err := decode(b)
		if err != nil {
			return
		}
		if again := encoded(t, s); !bytes.Equal(again, b) {
			t.Errorf("%q is read as %q", b, again)
		}
	})
}

// What is no snapshot is somebody's file.
func TestCheckPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := CheckPath(path); err != nil {
		t.Errorf("no file: %v", err)
	}
	for content, want := range map[string]error{
		"": nil, "ommer sna": nil, "ommer snapshot 1 chain 5\n": nil, "ommer snapshot 2 of the future": nil,
		"OMMERUNC\x01": ErrFormat, "a": ErrFormat, "notes of mine, a few lines": ErrFormat,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CheckPath(path); !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%q: %v, want %v", content, err, want)
		}
	}
}
