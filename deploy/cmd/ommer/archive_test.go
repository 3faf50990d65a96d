package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/ommer/ommer/deploy/devnode"
	"github.com/ommer/ommer/deploy/testchain"
	"github.com/ommer/ommer/workers/archive"
)

// realBlocks is a folder of era1 files that the go-ethereum module carries.
func realBlocks(t *testing.T) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ethereum/go-ethereum").Output()
	if err != nil {
		t.Fatalf("find go-ethereum: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "core", "rawdb", "eradb", "testdata")
}

// startNode serves blocks until the test ends.
func startNode(t *testing.T, blocks string) *devnode.Node {
	t.Helper()
	node, err := devnode.New(devnode.Config{Blocks: blocks})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return node
}

// archived runs the command and returns the file.
func archived(t *testing.T, from string, args ...string) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.uncles")
	code, out, errs := ommer(t, append([]string{"archive", "build", "--from", from, "--out", path}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if !strings.Contains(errs, " left\n") {
		t.Errorf("no progress is told: %s", errs)
	}
	if _, info, _ := ommer(t, "archive", "info", path); info != out {
		t.Errorf("build prints\n%s, info\n%s", out, info)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, content
}

// TestArchiveFromFileAndNode makes one archive in two ways.
func TestArchiveFromFileAndNode(t *testing.T) {
	blocks := filepath.Join(realBlocks(t), "sepolia-00021-b8814b14.era1")
	path, fromFile := archived(t, blocks)
	_, fromNode := archived(t, startNode(t, blocks).URL())
	if !bytes.Equal(fromFile, fromNode) {
		t.Errorf("an era1 file gives %d bytes, a node with its blocks %d; or others", len(fromFile), len(fromNode))
	}
	_, info, _ := ommer(t, "archive", "info", path)
	for _, line := range []string{
		`File +` + regexp.QuoteMeta(path),
		`Format +uncles, version 1`,
		`Chain +11155111, genesis 0x25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9`,
		fmt.Sprintf(`Size +%d bytes, \d+ of them index`, len(fromFile)),
		`Blocks +8192, 647 of them with 1273 uncles`,
		`From +172032, parent 0x[0-9a-f]{64}`,
		`To +180223, hash 0x[0-9a-f]{64}`,
		`Digest +[0-9a-f]{64}`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(info) {
			t.Errorf("no line %q in:\n%s", line, info)
		}
	}
}

// TestArchiveOfGeneratedChain asks an archive that was read from a node for all of
// 300 blocks.
func TestArchiveOfGeneratedChain(t *testing.T) {
	chain, err := testchain.Shape{Length: 300, London: 100, Merge: 280}.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	export := filepath.Join(t.TempDir(), "chain.rlp")
	f, err := os.Create(export)
	if err != nil {
		t.Fatal(err)
	}
	if err := testchain.Export(f, chain); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	path, _ := archived(t, startNode(t, export).URL())
	u, err := archive.OpenUncles(path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if got := u.Chain(); got.ID != testchain.ChainID || got.Genesis != chain[0].Hash() {
		t.Errorf("chain %d that begins with %v", got.ID, got.Genesis)
	}
	for n, b := range chain {
		want, err := rlp.EncodeToBytes(b.Uncles())
		if err != nil {
			t.Fatal(err)
		}
		byNumber, held, err := u.ByNumber(nil, uint64(n))
		// Behind the merge no block has uncles; the archive ends there.
		if covers := n < 280; err != nil || held != covers || held && !bytes.Equal(byNumber, want) {
			t.Errorf("block %d: %x %v %v, want %x %v", n, byNumber, held, err, want, covers)
		}
		byHash, held, err := u.ByHash(nil, b.Hash())
		if with := len(b.Uncles()) > 0; err != nil || held != with || held && !bytes.Equal(byHash, want) {
			t.Errorf("block %v: %x %v %v, want %x %v", b.Hash(), byHash, held, err, want, with)
		}
	}
	if _, held, _ := u.ByHash(nil, common.Hash(types.EmptyUncleHash)); held {
		t.Error("a hash of no block is held")
	}
}

func TestArchiveVerify(t *testing.T) {
	era1 := filepath.Join(realBlocks(t), "sepolia-00021-b8814b14.era1")
	path, content := archived(t, era1)
	for _, good := range []string{path, era1} {
		if code, out, errs := ommer(t, "archive", "verify", good); code != 0 || !strings.Contains(out, "whole and unaltered") {
			t.Errorf("exit code %d, %s%s", code, out, errs)
		}
	}
	if code, out, _ := ommer(t, "archive", "info", era1); code != 0 || !strings.Contains(out, "b8814b146889489e") {
		t.Errorf("exit code %d, %s", code, out)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"altered":   {append(bytes.Clone(content[:len(content)-9]), bytes.Repeat([]byte{7}, 9)...), "lists: the checksum of block"},
		"truncated": {content[:len(content)/2], "lists: the file ends after"},
		"empty":     {nil, "byte 0"},
		"something": {[]byte("something else that is long enough to hold a header of either of the formats of history"), "no era1 file"},
	} {
		bad := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(bad, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := ommer(t, "archive", "verify", bad)
		if code != 1 || out != "" || !strings.Contains(errs, bad) || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %s%s, want %q", name, code, out, errs, c.want)
		}
	}
}

func TestArchiveMistakes(t *testing.T) {
	era1 := filepath.Join(realBlocks(t), "sepolia-00021-b8814b14.era1")
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"nothing", []string{"build"}, 2, "--from"},
		{"no file to make", []string{"build", "--from", era1}, 2, "--out"},
		{"it exists", []string{"build", "--from", era1, "--out", there}, 2, there + " exists already"},
		{"no source", []string{"build", "--from", there + ".era1", "--out", there + ".x"}, 1, "no such file"},
		{"no folder for it", []string{"build", "--from", era1, "--out", there + "/x"}, 1, "not a directory"},
		{"blocks of a file", []string{"build", "--from", era1, "--out", there + ".x", "--last", "5"}, 1, "--first and --last are for nodes"},
		{"no such file", []string{"info", there + ".x"}, 1, "no such file"},
	} {
		code, out, errs := ommer(t, append([]string{"archive"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) || strings.Contains(errs, "goes on") {
			t.Errorf("%s: exit code %d, %s%s, want %d and %q", c.name, code, out, errs, c.code, c.want)
		}
	}
}

// TestArchiveInterrupted presses Ctrl-C when the second of two files is asked for.
func TestArchiveInterrupted(t *testing.T) {
	dir := realBlocks(t)
	_, want := archived(t, dir)
	files := http.FileServer(http.Dir(dir))
	path := filepath.Join(t.TempDir(), "x.uncles")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "-00021-") {
			files.ServeHTTP(w, r)
			return
		}
		for size := int64(0); size < 100; { // until the first file is in the journal
			if st, err := os.Stat(path + ".part"); err == nil {
				size = st.Size()
			}
			select {
			case <-r.Context().Done():
				return
			default:
			}
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	code, out, errs := ommer(t, "archive", "build", "--from", server.URL, "--out", path)
	if code != 1 || out != "" || !strings.Contains(errs, "stopped; what was done is kept in "+path+".part") {
		t.Fatalf("exit code %d, %s%s", code, out, errs)
	}
	if code, _, errs = ommer(t, "archive", "build", "--from", dir, "--out", path); code != 0 {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	if strings.Contains(errs, "block 8191:") {
		t.Errorf("it began anew: %s", errs)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("another file than in one go; %v", err)
	}
}
