package build

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"go.uber.org/goleak"

	"github.com/ommer/ommer/workers/archive"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

func TestMain(m *testing.M) {
	limited() // ends the process if this is the one that it starts
	goleak.VerifyTestMain(m)
}

// sepolia returns the paths of two era1 files of real blocks that the go-ethereum
// module carries: the blocks 0 to 8191 and 172032 to 180223.
var sepolia = sync.OnceValue(func() []string {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ethereum/go-ethereum").Output()
	if err != nil {
		panic(err)
	}
	dir = bytes.TrimSpace(dir)
	var paths []string
	for _, name := range []string{"sepolia-00000-643a00f7.era1", "sepolia-00021-b8814b14.era1"} {
		paths = append(paths, filepath.Join(string(dir), "core", "rawdb", "eradb", "testdata", name))
	}
	return paths
})

// folder returns a folder with both.
func folder(t *testing.T) string {
	dir := t.TempDir()
	for _, path := range sepolia() {
		if err := os.Symlink(path, filepath.Join(dir, filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var generated = sync.OnceValue(func() upstreamtest.Chain { return upstreamtest.Generate(300, 300, "build") })

// straight returns the file of blocks as it is made without any of this package.
func straight(t *testing.T, chainID uint64, blocks []*types.Block) []byte {
	t.Helper()
	s := new(archive.Segment)
	for _, b := range blocks {
		list, err := rlp.EncodeToBytes(b.Uncles())
		if err == nil {
			err = s.Add(b.Header(), b.Hash(), list)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Chain.ID = chainID
	path := filepath.Join(t.TempDir(), "straight")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = archive.Write(t.Context(), f, func(yield func(*archive.Segment, error) bool) { yield(s, nil) })
	if err != nil {
		t.Fatal(err)
	}
	return read(t, path)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// build builds and returns the file, of which nothing else may be left.
func build(t *testing.T, c Config) []byte {
	t.Helper()
	if c.Out == "" {
		c.Out = filepath.Join(t.TempDir(), "out.uncles")
	}
	if err := Build(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if left := besides(t, c.Out); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	return read(t, c.Out)
}

// besides lists what is in the folder of a file besides it.
func besides(t *testing.T, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			names = append(names, e.Name())
		}
	}
	return names
}

// checkSepolia asks the file for every block of both era1 files.
func checkSepolia(t *testing.T, file []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.uncles")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := archive.OpenUncles(path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if r := u.Ranges(); u.Chain().ID != 11155111 || len(r) != 2 || r[0].Last != 8191 || r[1].First != 172032 {
		t.Fatalf("chain %d, ranges %v", u.Chain().ID, r)
	}
	for _, path := range sepolia() {
		e, err := archive.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range e.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			list, held, err := u.ByNumber(nil, b.Header.Number.Uint64())
			if err != nil || !held || !bytes.Equal(list, b.UncleList) {
				t.Fatalf("block %v: %x %v %v, want %x", b.Header.Number, list, held, err, b.UncleList)
			}
		}
		e.Close()
	}
}

func TestFiles(t *testing.T) {
	file := build(t, Config{From: folder(t)})
	checkSepolia(t, file)
	one := build(t, Config{From: sepolia()[1]})
	if len(one) >= len(file) {
		t.Errorf("one era1 file makes %d bytes, two make %d", len(one), len(file))
	}
}

func fails(t *testing.T, c Config, want string) {
	t.Helper()
	c.Out = filepath.Join(t.TempDir(), "x")
	err := Build(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
	if err != nil && strings.Contains(err.Error(), upstreamtest.Secret) {
		t.Errorf("the error has the secret: %v", err)
	}
}

func TestExists(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.uncles")
	if err := os.WriteFile(out, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Build(t.Context(), Config{From: sepolia()[1], Out: out}); !errors.Is(err, ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	if string(read(t, out)) != "mine" || len(besides(t, out)) > 0 {
		t.Error("something was written")
	}
}

func TestRefusedSources(t *testing.T) {
	last := uint64(5)
	for _, c := range []struct{ from, want string }{
		{filepath.Join(t.TempDir(), "none.era1"), "no such file"},
		{t.TempDir(), "holds no *.era1"},
		{"ftp://example.com/", "scheme"},
		{"http://127.0.0.1:1/" + upstreamtest.Secret, "refused"},
	} {
		fails(t, Config{From: c.from}, c.want)
	}
	fails(t, Config{From: sepolia()[0], Last: &last}, "--first and --last are for nodes")
	fails(t, Config{From: web(t, folder(t), nil), Last: &last}, "--first and --last are for nodes")
}
