//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ommer/ommer/deploy/testchain"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// buildArchive runs `ommer archive build` and returns the file.
func buildArchive(t *testing.T, from string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sepolia.uncles")
	if _, stderr, code := run(t, "ommer", append([]string{"archive", "build", "--from", from, "--out", path}, args...)...); code != 0 {
		t.Fatalf("exit code %d; %s", code, stderr)
	}
	return path
}

// TestArchive asks workers that have an archive and no node for every uncle of the
// real blocks, and for what the archive cannot know.
func TestArchive(t *testing.T) {
	path, with, without := sepolia(t)
	file := buildArchive(t, path)
	f, key := startFleet(t, "", size{edges: 1, workers: 2, workerArgs: []string{"--archive", file}})
	for _, way := range secureTransports(f, key) {
		for _, byHash := range []bool{false, true} {
			t.Run(fmt.Sprintf("uncles/%s/by hash %v", way.name, byHash), func(t *testing.T) {
				compareUncles(t, way, with, byHash, 100)
			})
		}
		t.Run("nulls/"+way.name, func(t *testing.T) {
			compareNulls(t, way, with, without, false)
			compareNulls(t, way, with, nil, true)
		})
	}
	compareUnheld(t, f.httpCaller(f.edges[0], true, key), with, without)
	looked, blocks := 0.0, 0.0
	for _, w := range f.workers {
		looked += w.admin.mustMetric(t, `ommer_workers_blocks_total{network="`+network+`",source="archive"}`)
		blocks += w.admin.mustMetric(t, "ommer_archive_blocks")
	}
	if looked < sepoliaBlocks || blocks != 2*sepoliaBlocks {
		t.Errorf("%v blocks were looked up in archives of %v blocks, want at least %d and %d", looked, blocks, sepoliaBlocks, 2*sepoliaBlocks)
	}
}

// compareUnheld asks for all that an archive cannot know: hashes of blocks without uncles
// and of what is no block, and the numbers around those that it covers.
func compareUnheld(t *testing.T, c caller, with, without []block) {
	t.Helper()
	var qs []question
	for i := range without {
		qs = append(qs, question{block: &without[i], byHash: true})
	}
	for i := range with {
		qs = append(qs, question{block: &block{hash: with[i].uncles[0]}, byHash: true}, question{block: &block{hash: with[i].uncleHash}, byHash: true})
	}
	last := newest(with, without).number
	for _, number := range []uint64{last + 1, last + 2, last + 2*sepoliaBlocks, 1 << 32, 1<<63 - 1} {
		qs = append(qs, question{block: &block{number: number}})
	}
	if first := last + 1 - uint64(len(with)+len(without)); first > 0 {
		qs = append(qs, question{block: &block{number: first - 1}}, question{block: &block{}})
	}
	differences := 0
	for part := range slices.Chunk(qs, 500) {
		message := []byte{'['}
		for i, q := range part {
			if i > 0 {
				message = append(message, ',')
			}
			message = q.appendCall(message, i)
		}
		answer, err := c.call(t.Context(), append(message, ']'))
		var batch []response
		if err == nil {
			err = strict(answer, &batch)
		}
		if err != nil || len(batch) != len(part) {
			t.Fatalf("%d answers to %d calls: %v", len(batch), len(part), err)
		}
		for i, q := range part {
			said := batch[i].Error
			if _, err := batch[i].to(i); said == nil || said.Code != 4444 || said.Message != "pruned history unavailable" {
				differences++
				t.Errorf("%v: %.200s %v, want error 4444", q, batch[i].Result, err)
			}
		}
	}
	t.Logf("compared: %d blocks that an archive cannot know; differences: %d", len(qs), differences)
}

// TestArchiveOfAnotherChain has a node of another chain than the archive.
func TestArchiveOfAnotherChain(t *testing.T) {
	path, _, _ := sepolia(t)
	node := upstreamtest.Start(t, upstreamtest.Generate(3, 3, "another"))
	f := newFleet(t)
	f.startNATS()
	w := f.startWorker(node.URL, "--archive", path)
	eventually(t, soon, "the worker to tell of the chain", func() error {
		_, body, err := w.admin.get("/readyz")
		if err == nil && !strings.Contains(body, "chain 1337, the chain here is 11155111") {
			err = fmt.Errorf("readiness: %s", body)
		}
		return err
	})
}

// TestArchiveOfGeth reads a generated chain from geth, in both ways, and has a worker
// answer from that alone.
func TestArchiveOfGeth(t *testing.T) {
	shape := testchain.Shape{Length: 300, London: 100, Merge: 280}
	genesis, err := shape.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := shape.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	g := startGeth(t, genesis, chain[1:])
	_, stderr, code := run(t, "ommer", "archive", "build", "--from", "http://"+g.http, "--out", filepath.Join(t.TempDir(), "x"))
	if code != 1 || !strings.Contains(stderr, "--last") {
		t.Errorf("nothing is final, and it is exit code %d; %s", code, stderr)
	}
	last := fmt.Sprint(shape.Merge - 1)
	file := buildArchive(t, "http://"+g.http, "--last", last)
	overHTTP, err1 := os.ReadFile(file)
	overWS, err2 := os.ReadFile(buildArchive(t, "ws://"+g.ws, "--last", last))
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(overHTTP, overWS) {
		t.Errorf("over HTTP %d bytes, over WebSocket %d; or others; %v", len(overHTTP), len(overWS), err)
	}
	var with, without []block
	for _, b := range chain[:shape.Merge] {
		known := block{number: b.NumberU64(), hash: b.Hash(), uncleHash: b.UncleHash()}
		for _, u := range b.Uncles() {
			known.uncles = append(known.uncles, u.Hash())
		}
		if len(known.uncles) > 0 {
			with = append(with, known)
		} else {
			without = append(without, known)
		}
	}
	f, key := startFleet(t, "", size{edges: 1, workers: 1, workerArgs: []string{"--archive", file}})
	for _, way := range secureTransports(f, key) {
		for _, byHash := range []bool{false, true} {
			compareUncles(t, way, with, byHash, 50)
		}
		compareNulls(t, way, with, without, false)
		compareNulls(t, way, with, nil, true)
	}
	compareUnheld(t, f.httpCaller(f.edges[0], true, key), with, without)
}

// TestArchiveBuildKilled kills a build while the second of two files is on its way.
func TestArchiveBuildKilled(t *testing.T) {
	path, _, _ := sepolia(t)
	dir := filepath.Dir(path)
	want, err := os.ReadFile(buildArchive(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	files, asked := http.FileServer(http.Dir(dir)), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "-00021-") {
			files.ServeHTTP(w, r)
			return
		}
		whole, _ := os.ReadFile(path)
		w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
		_, _ = w.Write(whole[:len(whole)/2]) // the build may have gone
		_ = http.NewResponseController(w).Flush()
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	out := filepath.Join(t.TempDir(), "x.uncles")
	first := start(t, "build", "ommer", "archive", "build", "--from", server.URL, "--out", out)
	<-asked
	eventually(t, soon, "the first file to be in the journal", func() error {
		st, err := os.Stat(out + ".part")
		if err == nil && st.Size() < 100 {
			err = errors.New("it is empty")
		}
		return err
	})
	eventually(t, soon, "a part of the second file to be there", func() error {
		parts, err := filepath.Glob(filepath.Join(out+".files", "*.get"))
		if err == nil && len(parts) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	first.kill()
	if _, err := os.Stat(out); err == nil {
		t.Fatal("there is a file before it is whole")
	}
	ranges := 0
	healthy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			ranges++
		}
		if strings.Contains(r.URL.Path, "-00000-") {
			t.Error("the first file is asked for again")
		}
		files.ServeHTTP(w, r)
	}))
	defer healthy.Close()
	_, stderr, code := run(t, "ommer", "archive", "build", "--from", healthy.URL, "--out", out)
	got, err := os.ReadFile(out)
	if code != 0 || err != nil || !bytes.Equal(got, want) {
		t.Errorf("exit code %d, %v, %d bytes, want %d; or others; %s", code, err, len(got), len(want), stderr)
	}
	if left, err := filepath.Glob(out + ".*"); len(left) > 0 || err != nil {
		t.Errorf("left behind: %q, %v", left, err)
	}
	t.Logf("%d downloads went on from where they were", ranges)
}
