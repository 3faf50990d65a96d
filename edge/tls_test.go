package edge_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/edge/certs"
)

// clientTLS is a client that trusts the fixture and resumes what it can.
func (f *fixture) clientTLS() *tls.Config {
	return &tls.Config{RootCAs: f.roots, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(8)}
}

// asked connects, asks one question, with which session tickets have come too, and
// says how it was connected.
func (f *fixture) asked(t *testing.T, config *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	c, err := tls.Dial("tcp", f.HTTPS().String(), config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer c.Close()
	fmt.Fprint(c, post(testKey, lookup(1, 7)))
	if _, body := response(t, bufio.NewReader(c)); body != answer(1, 7) {
		t.Errorf("got %s", body)
	}
	return c.ConnectionState(), nil
}

// A client that has been at one edge resumes at another that has the same ticket keys.
func TestResumeAtAnotherNode(t *testing.T) {
	dir := t.TempDir()
	pair, err := certs.SelfSigned(dir)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(pair.Cert)
	if err != nil {
		t.Fatal(err)
	}
	tickets := filepath.Join(dir, "tickets")
	if err := os.WriteFile(tickets, []byte(strings.Repeat("0f", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	node := func(tickets string) *fixture {
		f := start(t, func(cfg *edge.Config) {
			store, err := certs.New(certs.Config{Pairs: []certs.Pair{pair}, TicketKeys: tickets})
			if err != nil {
				t.Fatal(err)
			}
			cfg.TLS = store.TLS()
		})
		f.roots.AppendCertsFromPEM(pem)
		return f
	}
	first, second, stranger := node(tickets), node(tickets), node("")
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			config := first.clientTLS()
			config.MaxVersion = version
			for _, visit := range []struct {
				what string
				*fixture
				resumes bool
			}{{"first", first, false}, {"second", second, true}, {"first again", first, true}, {"one without the keys", stranger, false}} {
				state, err := visit.asked(t, config)
				if err != nil || state.DidResume != visit.resumes || state.Version != version {
					t.Errorf("%s: resumed %v, version %x, %v, want %v", visit.what, state.DidResume, state.Version, err, visit.resumes)
				}
			}
		})
	}
}

// The edge speaks HTTP/1.1 alone. Who insists on HTTP/2 is told so in the handshake
// (RFC 7301 section 3.2), and who says nothing is served.
func TestALPN(t *testing.T) {
	f := start(t, nil)
	for _, tt := range []struct {
		offered  []string
		protocol string
		refused  bool
	}{
		{[]string{"http/1.1"}, "http/1.1", false},
		{[]string{"h2", "http/1.1"}, "http/1.1", false},
		{nil, "", false},
		{[]string{"h2"}, "", true},
	} {
		config := f.clientTLS()
		config.NextProtos = tt.offered
		state, err := f.asked(t, config)
		if tt.refused {
			if err == nil || !strings.Contains(err.Error(), "no application protocol") {
				t.Errorf("%q: %v, want no_application_protocol", tt.offered, err)
			}
		} else if err != nil || state.NegotiatedProtocol != tt.protocol {
			t.Errorf("%q: %q, %v, want %q", tt.offered, state.NegotiatedProtocol, err, tt.protocol)
		}
	}
}

// recorder keeps what a client has received.
type recorder struct {
	net.Conn
	received []byte
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.received = append(r.received, p[:n]...)
	return n, err
}

// crypto/tls cuts the first kilobytes of a connection into records of one segment
// each, unless it is told that this is no web page.
func TestAnAnswerIsOneRecord(t *testing.T) {
	f := start(t, nil)
	tcp, err := net.Dial("tcp", f.HTTPS().String())
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{Conn: tcp}
	config := f.clientTLS()
	config.MaxVersion = tls.VersionTLS12 // where tickets are no application data
	c := tls.Client(r, config)
	defer c.Close()
	calls := make([]string, 100)
	for i := range calls {
		calls[i] = lookup(i, i)
	}
	fmt.Fprint(c, post(testKey, "["+strings.Join(calls, ",")+"]"))
	_, body := response(t, bufio.NewReader(c))
	if len(body) < 4000 {
		t.Fatalf("an answer of %d bytes shows nothing", len(body))
	}
	const applicationData, header = 23, 5 // RFC 5246 section 6.2.1
	records := 0
	for b := r.received; len(b) >= header; b = b[header+int(binary.BigEndian.Uint16(b[3:])):] {
		if b[0] == applicationData {
			records++
		}
	}
	if records != 1 {
		t.Errorf("%d records, want 1", records)
	}
}
