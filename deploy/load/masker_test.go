package load

import (
	"fmt"
	"strings"
	"testing"
)

// Wherever a key stands in what a server says, before, across or behind where it is cut,
// nothing of it is shown that would be of use.
func TestMaskAcrossTheCut(t *testing.T) {
	const key = "k3y-0123456789-abcdefghij"
	m := newMasker([]Endpoint{{Path: "/v3/k3y"}, {Path: "/v3/" + key}})
	for at := range 1100 {
		text := m.mask(quote([]byte(strings.Repeat("x", at) + key + " and more")))
		if strings.Contains(text, key[:leastPrefix]) || len(text) > mostShown {
			t.Fatalf("at %d: %s", at, text)
		}
		if again := m.mask(text); again != text {
			t.Fatalf("at %d: %q becomes %q", at, text, again)
		}
		// Much of a text may be white space that is not shown.
		if text := m.mask(quote([]byte(strings.Repeat(" ", at) + key))); strings.Contains(text, key[:leastPrefix]) {
			t.Fatalf("after %d spaces: %s", at, text)
		}
	}
}

func TestMask(t *testing.T) {
	m := newMasker([]Endpoint{{Path: "/v3/a%20key"}, {Path: "/"}})
	for text, want := range map[string]string{
		"":                          "",
		"no a%20key, no a key":      "no ****, no ****",
		"two\r\n  lines\t":          "two lines",
		"\x1b[31mred\a\x00\x7f":     `\x1b[31mred\x07\x00\x7f`,
		"\u202eright to left\u009b": `\u202eright to left\u009b`,
		"\xff\xfe Grüße":            "? Grüße",
	} {
		if got := m.mask(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Every way in which a server can quote a request is masked.
func TestQuotedKeys(t *testing.T) {
	const key = "k3y-0123456789-abcdefghij"
	d, err := NewDialer(DialerConfig{Endpoints: []Endpoint{{Path: "/" + key}}, Questions: []Question{{Method: "m", Params: "[]", Hash: "0x1"}}, Timeout: 1})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Repeat("x", 190) + key
	for _, f := range []*Failure{
		httpStatus(500, []byte(said)), rpcError(1, said), closedWith(1000, []byte(said)), malformed("a frame: %s", quote([]byte(said))),
		d.qs.check(d.qs.requests[0], []byte(said), firstID).failed[0].why,
		d.qs.check(d.qs.requests[0], fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":%q}`, firstID, said), firstID).failed[0].why,
	} {
		if text := d.clean(f).Error(); strings.Contains(text, key[:leastPrefix]) {
			t.Error(text)
		}
	}
}
