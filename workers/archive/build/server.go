package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ommer/ommer/workers/archive"
	"github.com/ommer/ommer/workers/upstream"
)

// Limits of what a web server can make the build hold.
const (
	maxPage = 16 << 20         // an index of files
	maxFile = 4 << 30          // main net's largest are below 1 GB
	stall   = 30 * time.Second // without a byte
	asking  = 10 * time.Second // what it is
)

// errStatus is an HTTP status that trying again will not change.
var errStatus = errors.New("HTTP status")

// open finds out what c.From is.
func open(ctx context.Context, c Config) (source, error) {
	u, err := url.Parse(c.From)
	if err != nil || !strings.Contains(c.From, "://") {
		if c.First != nil || c.Last != nil {
			return nil, fmt.Errorf("%w: --first and --last are for nodes; era1 files are read whole", ErrSource)
		}
		return openFiles(c.From)
	}
	switch u.Scheme {
	case "ws", "wss":
		return openNode(c)
	case "http", "https":
	default:
		return nil, fmt.Errorf("%w: the scheme of --from must be http, https, ws or wss", ErrSource)
	}
	s := &server{
		base: u, name: upstream.Redact(c.From), dir: c.Out + ".files", stall: stall,
		client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: stall}},
	}
	is, err := s.isNode(ctx)
	if err != nil {
		s.close()
		return nil, err
	}
	if is {
		s.close()
		return openNode(c)
	}
	if c.First != nil || c.Last != nil {
		s.close()
		return nil, fmt.Errorf("%w: --first and --last are for nodes, and %s is none", ErrSource, s.name)
	}
	return s, nil
}

// server is a web server with a folder of era1 files. Their names are in its index
// page, or in its checksums.txt.
type server struct {
	base   *url.URL
	name   string
	dir    string // for what is being downloaded
	stall  time.Duration
	client *http.Client
}

// isNode asks the server as one asks a node.
func (s *server) isNode(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base.String(),
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`))
	if err != nil {
		return false, s.clean(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(r)
	if err != nil {
		return false, s.clean(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return false, s.clean(err)
	}
	var answer struct {
		Version string `json:"jsonrpc"`
	}
	return json.Unmarshal(body, &answer) == nil && answer.Version != "", nil
}

// clean takes the URL out of an error of net/http.
func (s *server) clean(err error) error {
	var in *url.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// era1Name is how era1 files are named: network, number of the file, and the first
// half of the accumulator root's first 8 bytes.
var era1Name = regexp.MustCompile(`[a-z0-9]+-([0-9]{5})-[0-9a-f]{8}\.era1\b`)

func (s *server) pieces(ctx context.Context, done []archive.Range) ([]piece, error) {
	names, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	var all []piece
	for _, name := range names {
		number, err := strconv.ParseUint(era1Name.FindStringSubmatch(name)[1], 10, 32)
		if err != nil {
			return nil, err
		}
		first := number * archive.MaxEra1Blocks
		all = append(all, piece{
			name: name, first: first, last: first + archive.MaxEra1Blocks - 1,
			load: func(ctx context.Context) (*archive.Segment, error) { return s.fetch(ctx, name, first) },
		})
	}
	return unread(all, done)
}

// list returns the names of the files.
func (s *server) list(ctx context.Context) (names []string, err error) {
	folder := *s.base
	if !strings.HasSuffix(folder.Path, "/") {
		folder.Path += "/"
	}
	s.base = &folder
	for _, page := range []string{"", "checksums.txt"} {
		var text bytes.Buffer
		err = s.retry(ctx, func(ctx context.Context) error {
			text.Reset()
			return s.get(ctx, page, 0, func(_ int64, body io.Reader) error {
				_, err := io.Copy(&text, io.LimitReader(body, maxPage))
				return err
			})
		})
		if err != nil && !errors.Is(err, errStatus) {
			return nil, err
		}
		names = append(names, era1Name.FindAllString(text.String(), -1)...)
		if len(names) > 0 {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
	return nil, fmt.Errorf("%w: %s is no Ethereum node, and neither its page nor checksums.txt names an era1 file", ErrSource, s.name)
}

// fetch downloads a file, verifies it and removes it.
func (s *server) fetch(ctx context.Context, name string, first uint64) (*archive.Segment, error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, name)
	if err := s.download(ctx, name, path); err != nil {
		return nil, err
	}
	segment, err := readEra1(ctx, path)
	if ctx.Err() != nil {
		return nil, ctx.Err() // it is here for the next time
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	if segment.First != first {
		return nil, fmt.Errorf("%w: %s/%s begins with block %d, want %d", ErrSource, s.name, name, segment.First, first)
	}
	return segment, nil
}

// download gets a file, from where a former attempt has ended.
func (s *server) download(ctx context.Context, name, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil // whole, or it would not have its name
	}
	f, err := os.OpenFile(path+".get", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	err = s.retry(ctx, func(ctx context.Context) error {
		at, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		return s.get(ctx, name, at, func(from int64, body io.Reader) error {
			if err := f.Truncate(from); err != nil {
				return err
			}
			n, err := io.Copy(io.NewOffsetWriter(f, from), io.LimitReader(body, maxFile-from))
			if err == nil && from+n == maxFile {
				err = fmt.Errorf("%w: %s has over %d bytes", errStatus, name, int64(maxFile)-1)
			}
			return err
		})
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".get", path)
}

// get asks for a file of the folder from byte at on, and hands over what comes with
// the position that it begins at: the server may not be able to begin elsewhere than
// at the start.
func (s *server) get(ctx context.Context, name string, at int64, use func(from int64, body io.Reader) error) error {
	whole := ctx
	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base.ResolveReference(&url.URL{Path: name}).String(), nil)
	if err != nil {
		return s.clean(err)
	}
	r.Header.Set("Accept-Encoding", "identity") // positions are those of the file
	if at > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", at))
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return s.clean(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	switch {
	case resp.StatusCode == http.StatusOK:
		at = 0
	case resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", at)):
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && at > 0:
		if resp.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", at) {
			return nil // there is no more of it
		}
		return errors.Join(use(0, strings.NewReader("")), fmt.Errorf("%s: %s is shorter than it was", s.name, name))
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return fmt.Errorf("%s: %s: HTTP status %d", s.name, name, resp.StatusCode)
	default:
		return fmt.Errorf("%s: %s: %w %d", s.name, name, errStatus, resp.StatusCode)
	}
	watch := time.AfterFunc(s.stall, cancel)
	defer watch.Stop()
	err = use(at, &watched{resp.Body, watch, s.stall})
	if ctx.Err() != nil && whole.Err() == nil { // not what a user has stopped
		return fmt.Errorf("%s: %s: nothing came for %v", s.name, name, s.stall)
	}
	return err
}

// watched is a body of which something has to come now and then.
type watched struct {
	io.Reader
	watch *time.Timer
	stall time.Duration
}

// Read reads, and gives the body more time.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if n > 0 {
		w.watch.Reset(w.stall)
	}
	return n, err
}

// retry calls f until it works, or has failed too often, or in a way that will stay.
func (s *server) retry(ctx context.Context, f func(ctx context.Context) error) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := f(ctx)
		var local *os.PathError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case try == tries, errors.Is(err, errStatus), errors.As(err, &local):
			return err
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

func (*server) beside() int { return 2 } // one comes while the other is verified

// close removes the folder of downloads, if none is left there.
func (s *server) close() {
	_ = os.Remove(s.dir)
	s.client.CloseIdleConnections()
}
