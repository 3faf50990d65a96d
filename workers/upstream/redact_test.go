package upstream

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for _, tt := range []struct{ name, url, want string }{
		{"key in the path", "https://mainnet.example.org/v3/0123456789abcdef0123456789abcdef", "https://mainnet.example.org"},
		{"key in the query", "wss://example.org:8546/?apikey=0123456789abcdef", "wss://example.org:8546"},
		{"user part", "https://user:password@example.org/", "https://example.org"},
		{"not a URL", "https://exa mple.org/0123456789abcdef", "invalid-url"},
		{"no host", "0123456789abcdef", "invalid-url"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Redact(tt.url); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestScrubber(t *testing.T) {
	for _, tt := range []struct{ name, url, text, want string }{
		{"the whole URL", "https://h.example/v3/0123456789abcdef",
			`Post "https://h.example/v3/0123456789abcdef": EOF`, `Post "https://h.example": EOF`},
		{"the key alone", "https://h.example/v3/0123456789abcdef",
			"invalid project id 0123456789abcdef", "invalid project id ***"},
		{"a query value", "https://h.example/?key=0123456789abcdef&x=1",
			"bad key 0123456789abcdef", "bad key ***"},
		{"the user part", "https://alice:secret-word@h.example/",
			"https://alice:secret-word@h.example/ said secret-word", "https://h.example said ***"},
		{"an escaped segment", "https://h.example/v3/0123456789%2Fabcdef",
			"no 0123456789%2Fabcdef here", "no *** here"},
		{"words stay", "https://h.example/v3/rpc", "no v3 or rpc", "no v3 or rpc"},
		{"line ends", "https://h.example/", "a\nb\x00", "a b "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := newScrubber(tt.url).text(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestURLErrorLosesItsURL(t *testing.T) {
	// net/http quotes the URL in its own spelling.
	err := &url.Error{Op: "Post", URL: "https://h.example/v3/0123456789%61bcdef", Err: errors.New("refused")}
	got := newScrubber("https://h.example/v3/0123456789abcdef").callError(err)
	if want := ErrUnreachable.Error() + ": refused"; got.Error() != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScrubberBoundsText(t *testing.T) {
	got := newScrubber("https://h.example/").callError(errors.New(strings.Repeat("x", 1<<20)))
	if n := len(got.Error()); n > 300 {
		t.Errorf("an error of %d bytes", n)
	}
}

func TestNewRefuses(t *testing.T) {
	const secret = "0123456789abcdef"
	many := make([]string, MaxNodes+1)
	for i := range many {
		many[i] = "http://h.example/"
	}
	for _, tt := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no URL", Config{}, "no URL"},
		{"too many", Config{URLs: many}, "33 URLs"},
		{"scheme", Config{URLs: []string{"http://h.example", "ftp://h.example/" + secret}}, "URL 2 of 2: the scheme"},
		{"no scheme", Config{URLs: []string{"h.example/" + secret}}, "the scheme"},
		{"no host", Config{URLs: []string{"https:///" + secret}}, "no host"},
		{"not a URL", Config{URLs: []string{"https://h.example/%zz" + secret}}, "not a URL"},
		{"port", Config{URLs: []string{"https://h.example:123456/" + secret}}, "port"},
		{"limit", Config{URLs: []string{"https://h.example/"}, InFlight: -1}, "negative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want an error with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the URL's secret: %v", err)
			}
		})
	}
}
