package load

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// Endpoint is where and how questions are asked. It can be sent to another process
// as JSON; the path holds the API key, so that it must not be printed.
type Endpoint struct {
	Addr     string // host:port
	Path     string // with the API key
	WS       bool   // WebSocket, else HTTP with keep-alive
	TLS      bool
	CA       []byte // PEM that the server is verified with; empty: the system's, unless Insecure
	Insecure bool   // do not verify the server
	Gzip     bool   // ask for compressed answers, over HTTP
}

// errURL does not quote the URL: it holds a key.
var errURL = errors.New("want http://, https://, ws:// or wss://, then HOST[:PORT]/PATH, without a user, a query or a fragment")

// ParseURL reads a URL as a client of the service has it, for example
// wss://host:8443/ws/v3/KEY. No error quotes it.
func ParseURL(text string) (Endpoint, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return Endpoint{}, errURL
	}
	e := Endpoint{Path: u.EscapedPath()}
	port := "80"
	switch u.Scheme {
	case "http":
	case "https":
		e.TLS = true
	case "ws":
		e.WS = true
	case "wss":
		e.WS, e.TLS = true, true
	default:
		return Endpoint{}, errURL
	}
	if e.TLS {
		port = "443"
	}
	if p := u.Port(); p != "" {
		port = p
	}
	if e.Path == "" {
		e.Path = "/"
	}
	e.Addr = net.JoinHostPort(u.Hostname(), port)
	return e, nil
}

// KeyPlace is what WithKey replaces.
const KeyPlace = "KEY"

// WithKey puts a key in the place of a last segment of the path that says KEY. It
// reports whether there is one.
func (e Endpoint) WithKey(key string) (Endpoint, bool) {
	dir, ok := strings.CutSuffix(e.Path, "/"+KeyPlace)
	if ok {
		e.Path = dir + "/" + url.PathEscape(key)
	}
	return e, ok
}

// NeedsKey says whether the path has a place for a key and no key.
func (e Endpoint) NeedsKey() bool { return e.key() == KeyPlace }

// key is the last segment of the path.
func (e Endpoint) key() string { return e.Path[strings.LastIndexByte(e.Path, '/')+1:] }

// String is the URL without the key.
func (e Endpoint) String() string {
	scheme := "http"
	if e.WS {
		scheme = "ws"
	}
	if e.TLS {
		scheme += "s"
	}
	path := e.Path
	if key := e.key(); key != "" {
		path = strings.TrimSuffix(path, key) + "****"
	}
	return scheme + "://" + e.Addr + path
}

// host is the name that the server's certificate must have.
func (e Endpoint) host() string {
	host, _, err := net.SplitHostPort(e.Addr)
	if err != nil {
		return e.Addr
	}
	return host
}
