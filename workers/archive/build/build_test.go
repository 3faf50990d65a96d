package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// web serves the files of a folder; handle may answer in its place.
func web(t *testing.T, dir string, handle func(w http.ResponseWriter, r *http.Request) bool) string {
	files := http.FileServer(http.Dir(dir))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case handle != nil && handle(w, r):
		case r.Method != http.MethodGet:
			http.Error(w, "<h1>Method not allowed</h1>", http.StatusMethodNotAllowed)
		default:
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestServer(t *testing.T) {
	dir := folder(t)
	want := build(t, Config{From: dir})
	t.Run("index page", func(t *testing.T) {
		if !bytes.Equal(build(t, Config{From: web(t, dir, nil)}), want) {
			t.Error("another file than of the same era1 files here")
		}
	})
	t.Run("checksums.txt in a folder", func(t *testing.T) {
		var list strings.Builder
		for _, path := range sepolia() {
			fmt.Fprintf(&list, "%064x  %s\n", 0, filepath.Base(path))
		}
		url := web(t, dir, func(w http.ResponseWriter, r *http.Request) bool {
			r.URL.Path = strings.TrimPrefix(r.URL.Path, "/era1")
			switch r.URL.Path {
			case "/", "":
				http.Error(w, "no index", http.StatusForbidden)
			case "/checksums.txt":
				fmt.Fprint(w, list.String())
			default:
				return false
			}
			return true
		})
		if !bytes.Equal(build(t, Config{From: url + "/era1"}), want) {
			t.Error("another file than of the same era1 files here")
		}
	})
	t.Run("connections that break", func(t *testing.T) {
		var ranges atomic.Int32
		var mu sync.Mutex
		broken := map[string]bool{}
		url := web(t, dir, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Range") != "" {
				ranges.Add(1)
			}
			mu.Lock()
			defer mu.Unlock()
			if !strings.HasSuffix(r.URL.Path, ".era1") || broken[r.URL.Path] {
				return false
			}
			broken[r.URL.Path] = true
			data, _ := os.ReadFile(filepath.Join(dir, filepath.Base(r.URL.Path)))
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			w.Write(data[:len(data)/3])
			panic(http.ErrAbortHandler)
		})
		if !bytes.Equal(build(t, Config{From: url}), want) {
			t.Error("another file than of the same era1 files here")
		}
		if n := ranges.Load(); n != 2 {
			t.Errorf("%d downloads went on from where they had broken, want 2", n)
		}
	})
	t.Run("silence in the middle of a file", func(t *testing.T) {
		url := web(t, dir, func(w http.ResponseWriter, r *http.Request) bool {
			fmt.Fprint(w, "the start")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return true
		})
		base, err := neturl.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		s := &server{base: base, name: "server", stall: 20 * time.Millisecond, client: &http.Client{Transport: &http.Transport{}}}
		defer s.close()
		err = s.get(t.Context(), "x", 0, func(_ int64, body io.Reader) error {
			_, err := io.Copy(io.Discard, body)
			return err
		})
		if err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing came for 20ms") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another file under the name", func(t *testing.T) {
		url := web(t, dir, func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "-00000-") {
				r.URL.Path = "/" + filepath.Base(sepolia()[1])
			}
			return false
		})
		out := filepath.Join(t.TempDir(), "x")
		if err := Build(t.Context(), Config{From: url, Out: out}); !errors.Is(err, archive.ErrDamaged) || !strings.Contains(err.Error(), "named for 643a00f7") {
			t.Errorf("got %v, want that it is refused", err)
		}
	})
	t.Run("neither", func(t *testing.T) {
		err := Build(t.Context(), Config{From: web(t, t.TempDir(), nil), Out: filepath.Join(t.TempDir(), "x")})
		if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "no Ethereum node") {
			t.Errorf("got %v", err)
		}
	})
}

func TestNode(t *testing.T) {
	chain := generated()
	node := upstreamtest.Start(t, chain)
	node.SetFinalized(300)
	want := straight(t, upstreamtest.ChainID, chain)
	for _, url := range []string{node.URL, node.WSURL} {
		if got := build(t, Config{From: url}); !bytes.Equal(got, want) {
			t.Errorf("the file has %d bytes, want %d; or others", len(got), len(want))
		}
	}
	first, last := uint64(11), uint64(99)
	if !bytes.Equal(build(t, Config{From: node.URL, First: &first, Last: &last}), straight(t, upstreamtest.ChainID, chain[11:100])) {
		t.Error("another file of blocks 11 to 99")
	}
	node.SetFinalized(-1)
	fails(t, Config{From: node.URL}, "--last")
	if !bytes.Equal(build(t, Config{From: node.URL, Last: &last}), straight(t, upstreamtest.ChainID, chain[:100])) {
		t.Error("another file of blocks 0 to 99")
	}
	node.SetFinalized(50)
	fails(t, Config{From: node.URL, Last: &last}, "not final")
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

// TestLyingNode has a node that lies, in one way at a time, about a block in the
// middle.
func TestLyingNode(t *testing.T) {
	chain := generated()
	other := upstreamtest.Generate(300, 149, "another")
	for _, c := range []struct {
		name    string
		falsify func(method, block string, index int, object map[string]any) (map[string]any, error)
		want    string
	}{
		{"another header", func(_, block string, _ int, o map[string]any) (map[string]any, error) {
			if block == "0x96" {
				o["gasUsed"] = "0x77"
			}
			return o, nil
		}, "block 150: untrue answer"},
		{"another uncle", func(_, _ string, index int, o map[string]any) (map[string]any, error) {
			if index == 1 && o != nil {
				o["nonce"] = "0x1111111111111111"
			}
			return o, nil
		}, "untrue answer"},
		{"no uncles", func(_, _ string, index int, o map[string]any) (map[string]any, error) {
			if index >= 0 {
				return nil, nil
			}
			return o, nil
		}, "history pruned"},
		{"no block", func(_, block string, _ int, o map[string]any) (map[string]any, error) {
			if block == "0x96" {
				return nil, nil
			}
			return o, nil
		}, "block 150: history pruned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := upstreamtest.Start(t, chain)
			node.SetFinalized(300)
			node.Falsify(c.falsify)
			fails(t, Config{From: node.URL}, c.want)
		})
	}
	t.Run("blocks of two chains", func(t *testing.T) { // each true by itself
		mixed := slices.Concat(chain[:160], other[160:])
		node := upstreamtest.Start(t, mixed)
		node.SetFinalized(300)
		fails(t, Config{From: node.URL}, "the parent of block 160")
	})
	t.Run("another network's genesis", func(t *testing.T) {
		node := upstreamtest.Start(t, chain)
		node.SetFinalized(300)
		node.SetChainID(1)
		fails(t, Config{From: node.URL}, "chain 1 begins with")
	})
}

// TestGoesOn ends a build behind each of its pieces, and in the midst of writing, and
// goes on.
func TestGoesOn(t *testing.T) {
	chain := generated()
	node := upstreamtest.Start(t, chain)
	node.SetFinalized(300)
	dir := folder(t)
	for name, c := range map[string]Config{"files": {From: dir}, "server": {From: web(t, dir, nil)}} {
		t.Run(name, func(t *testing.T) {
			want := build(t, c)
			c.Out = filepath.Join(t.TempDir(), "out.uncles")
			for part := 0; ; part++ {
				ctx, cancel := context.WithCancel(t.Context())
				c.Progress = func(Progress) { cancel() } // after one piece
				err := Build(ctx, c)
				cancel()
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) || part > 3 {
					t.Fatal(err)
				}
				tear(t, c.Out+Suffix, part)
			}
			if !bytes.Equal(read(t, c.Out), want) {
				t.Error("another file than in one go")
			}
			if left := besides(t, c.Out); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
	t.Run("node", func(t *testing.T) { // up to other blocks each time
		out := filepath.Join(t.TempDir(), "out.uncles")
		for _, last := range []uint64{5, 64, 200} {
			ctx, cancel := context.WithCancel(t.Context())
			if err := Build(ctx, Config{From: node.URL, Out: out, Last: &last, Progress: func(Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			tear(t, out+Suffix, 2)
		}
		before := node.Calls.Load()
		if !bytes.Equal(build(t, Config{From: node.URL, Out: out}), straight(t, upstreamtest.ChainID, chain)) {
			t.Error("another file than in one go")
		}
		if calls := node.Calls.Load() - before; calls > 100+3*67+10 {
			t.Errorf("%d calls for the last 100 blocks", calls)
		}
	})
}

// tear leaves something behind the last frame, as a process does that is killed.
func tear(t *testing.T, path string, how int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.Write([][]byte{nil, {200, 0}, {200, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7}, make([]byte, 4096)}[how])
	if err != nil {
		t.Fatal(err)
	}
}

// TestOtherBlocks goes on with a source that has others.
func TestOtherBlocks(t *testing.T) {
	node := upstreamtest.Start(t, generated())
	node.SetFinalized(300)
	out := filepath.Join(t.TempDir(), "out.uncles")
	last := uint64(200)
	begin := func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := Build(ctx, Config{From: node.URL, Out: out, Last: &last, Progress: func(Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	begin()
	for _, c := range []struct {
		name string
		from string
		last uint64
		want error
	}{
		{"era1 files", sepolia()[1], 0, ErrSource},
		{"fewer blocks", node.URL, 100, ErrSource},
	} {
		config := Config{From: c.from, Out: out}
		if c.last > 0 {
			config.Last = &c.last
		}
		if err := Build(t.Context(), config); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	node.SetChain(upstreamtest.Generate(300, 100, "another"))
	kept := func(Progress) { t.Error("more of a chain that has changed was kept") }
	if err := Build(t.Context(), Config{From: node.URL, Out: out, Progress: kept}); !errors.Is(err, archive.ErrChain) || !strings.Contains(err.Error(), "the parent of block 201") {
		t.Errorf("a chain that has changed: %v", err)
	}
	if err := os.WriteFile(out+Suffix, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Build(t.Context(), Config{From: node.URL, Out: out}); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a file that is no journal: %v", err)
	}
	if got := read(t, out+Suffix); string(got) != "something else" {
		t.Error("it was written to")
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

func TestTwoBuilds(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.uncles")
	j, err := openJournal(out + Suffix)
	if err != nil {
		t.Fatal(err)
	}
	if err := Build(t.Context(), Config{From: sepolia()[1], Out: out}); err == nil || !strings.Contains(err.Error(), "another build") {
		t.Errorf("got %v, want that it is in use", err)
	}
	j.close()
	build(t, Config{From: sepolia()[1], Out: out})
}

// TestNodeThatComesBack has a node that is out of reach for a while.
func TestNodeThatComesBack(t *testing.T) {
	node := upstreamtest.Start(t, generated()[:40])
	node.SetFinalized(39)
	var failed atomic.Int32
	node.Handle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if n := failed.Add(1); n > 4 && n < 7 {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
	if !bytes.Equal(build(t, Config{From: node.URL}), straight(t, upstreamtest.ChainID, generated()[:40])) {
		t.Error("another file")
	}
	if failed.Load() < 7 {
		t.Errorf("only %d requests: the node was never away", failed.Load())
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
