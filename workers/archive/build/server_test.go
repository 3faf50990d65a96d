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
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ommer/ommer/workers/archive"
)

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
