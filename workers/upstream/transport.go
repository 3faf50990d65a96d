package upstream

import (
	"io"
	"net"
	"net/http"
	"time"
)

// newHTTPClient returns the client of one node. It shows told each response. The time for a whole call is that
// of its context; what is set here keeps a node from costing memory or connections
// without end.
func newHTTPClient(inFlight int, maxResponse int64, told func(*http.Response)) *http.Client {
	dialer := net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Client{
		Transport: &boundedTransport{
			max: maxResponse, told: told,
			Transport: http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				DialContext:            dialer.DialContext,
				TLSHandshakeTimeout:    5 * time.Second,
				IdleConnTimeout:        90 * time.Second,
				MaxIdleConns:           inFlight,
				MaxIdleConnsPerHost:    inFlight,
				MaxResponseHeaderBytes: 64 << 10,
				ForceAttemptHTTP2:      true,
			},
		},
		// A node has no reason to redirect, and the URL's secrets are not for others.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NewHTTPClient returns a client for those who ask a node without a Set: it follows no
// redirection, keeps at most idle connections, and ends answers of over maxResponse bytes.
func NewHTTPClient(idle int, maxResponse int64) *http.Client {
	return newHTTPClient(idle, maxResponse, func(*http.Response) {})
}

// idempotent marks requests as safe to send again, which lets net/http replace a
// kept connection that the node closed in the meantime. With an empty value it does
// not travel, see http.Transport.
var idempotent = http.Header{"X-Idempotency-Key": {}}

// boundedTransport ends an answer that goes over its limit with errTooLarge. The
// client of go-ethereum reads answers and the bodies of errors whole.
type boundedTransport struct {
	http.Transport
	max  int64
	told func(*http.Response) // looks at the header of each
}

func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	t.told(resp)
	resp.Body = &boundedBody{body: resp.Body, left: t.max}
	return resp, nil
}

type boundedBody struct {
	body io.ReadCloser
	left int64 // bytes that may still come
}

func (b *boundedBody) Read(p []byte) (int, error) {
	// One byte over the limit is asked for, to tell an answer that ends there from
	// one that goes on.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		b.left = -1
		return 0, errTooLarge
	}
	return n, err
}

func (b *boundedBody) Close() error { return b.body.Close() }
