package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ommer/ommer/workers/archive"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

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
