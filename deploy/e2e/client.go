//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

const (
	// callTime bounds a call, longer than any time-out of the service.
	callTime = 30 * time.Second
	// maxMessage bounds what a client reads at once; a batch of 100 answers is
	// about 170 KB.
	maxMessage = 4 << 20
)

// caller asks one edge. It is used by one goroutine at a time.
type caller interface {
	// call sends a message and returns the answer to it.
	call(ctx context.Context, message []byte) ([]byte, error)
}

// httpCaller calls over HTTP or HTTPS.
type httpCaller struct {
	http *http.Client
	url  string
}

// statusError is an HTTP status other than 200.
type statusError struct {
	status int
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP status %d: %.200s", e.status, e.body) }

func (c *httpCaller) call(ctx context.Context, message []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &statusError{resp.StatusCode, string(body)}
	}
	return body, nil
}

// wsCaller calls over a WebSocket.
type wsCaller struct{ conn *websocket.Conn }

// dialWS opens a WebSocket. A refused handshake is a statusError.
func dialWS(ctx context.Context, url string, config *tls.Config) (*wsCaller, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	// The connection leaves the transport with the upgrade; a refused one must not
	// stay behind in it.
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	conn, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		if resp != nil {
			return nil, &statusError{resp.StatusCode, err.Error()}
		}
		return nil, err
	}
	conn.SetReadLimit(maxMessage)
	return &wsCaller{conn}, nil
}

func (c *wsCaller) call(ctx context.Context, message []byte) ([]byte, error) {
	if err := c.conn.Write(ctx, websocket.MessageText, message); err != nil {
		return nil, err
	}
	_, answer, err := c.conn.Read(ctx)
	return answer, err
}

// closedWith returns the close code that ended a WebSocket, once it has ended.
func (c *wsCaller) closedWith(ctx context.Context) (websocket.StatusCode, error) {
	_, message, err := c.conn.Read(ctx)
	if err == nil {
		return 0, fmt.Errorf("a message instead of the close: %.200s", message)
	}
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		return closed.Code, nil
	}
	return 0, err
}

// ask asks one question and checks the answer.
func ask(ctx context.Context, c caller, q question) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	raw, err := c.call(ctx, q.appendCall(nil, 1))
	if err != nil {
		return err
	}
	r, err := result(raw, 1)
	if err != nil {
		return fmt.Errorf("%v: %w", q, err)
	}
	_, err = q.check(r)
	return err
}

// askAll asks every question, size of them in one message, with all callers at
// work, and returns the results in the order of the questions. A size of 1 sends
// no batches.
func askAll(ctx context.Context, callers []caller, qs []question, size int) ([][]byte, error) {
	out := make([][]byte, len(qs))
	ended := make(chan error, len(callers))
	for w, c := range callers {
		go func() {
			for from := w * size; from < len(qs); from += len(callers) * size {
				part := qs[from:min(from+size, len(qs))]
				if err := askPart(ctx, c, part, size > 1, out[from:]); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	var errs []error
	for range callers {
		errs = append(errs, <-ended)
	}
	return out, errors.Join(errs...)
}

// askPart asks the questions of one message.
func askPart(ctx context.Context, c caller, qs []question, batch bool, out [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if !batch {
		raw, err := c.call(ctx, qs[0].appendCall(nil, 0))
		if err != nil {
			return err
		}
		r, err := result(raw, 0)
		if err != nil {
			return fmt.Errorf("%v: %w", qs[0], err)
		}
		out[0] = r
		return nil
	}
	message := []byte{'['}
	for i, q := range qs {
		if i > 0 {
			message = append(message, ',')
		}
		message = q.appendCall(message, i)
	}
	raw, err := c.call(ctx, append(message, ']'))
	if err != nil {
		return err
	}
	rs, err := results(raw, len(qs))
	if err != nil {
		return err
	}
	for i := range rs {
		out[i] = rs[i]
	}
	return nil
}
