package upstream

import (
	"net/url"
	"strconv"
	"strings"
)

// Redact returns the part of a node's URL that may be shown: scheme://host:port.
// Providers put their keys into the path, the query or the user part.
func Redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "invalid-url"
	}
	return u.Scheme + "://" + u.Host
}

// names gives each URL the name that logs and metrics use: what Redact leaves, with
// a number behind it where several URLs share that.
func names(urls []string) []string {
	seen := make(map[string]int)
	list := make([]string, len(urls))
	for i, raw := range urls {
		name := Redact(raw)
		seen[name]++
		if n := seen[name]; n > 1 {
			name += "#" + strconv.Itoa(n)
		}
		list[i] = name
	}
	return list
}

// minSecret is the length from which a part of a URL counts as a secret. Shorter
// ones, such as v3 or rpc, are words that an error may well contain.
const minSecret = 8

// maxText bounds what is kept of an error's text.
const maxText = 200

// scrubber takes the secrets of one URL out of texts that others wrote: go-ethereum
// and net/http quote the URL, and some providers quote the key.
type scrubber struct {
	replace *strings.Replacer
}

func newScrubber(raw string) scrubber {
	const gap = "***"
	pairs := []string{raw, Redact(raw)} // first, so that what is no secret of it stays readable
	hide := func(s string) {
		if len(s) >= minSecret {
			pairs = append(pairs, s, gap)
		}
	}
	if u, err := url.Parse(raw); err == nil {
		hide(u.RequestURI())
		for _, path := range []string{u.EscapedPath(), u.Path} {
			for segment := range strings.SplitSeq(path, "/") {
				hide(segment)
			}
		}
		hide(u.RawQuery)
		for _, values := range u.Query() {
			for _, v := range values {
				hide(v)
			}
		}
		if u.User != nil {
			pairs = append(pairs, u.User.String()+"@", gap+"@")
			if p, ok := u.User.Password(); ok {
				hide(p)
				hide(url.QueryEscape(p))
			}
			hide(u.User.Username())
		}
	}
	return scrubber{strings.NewReplacer(pairs...)}
}

// text returns s without the secrets, on one line and of bounded length.
func (sc scrubber) text(s string) string {
	s = sc.replace.Replace(s)
	if len(s) > maxText {
		s = s[:maxText] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// Names returns what URLs are called where they may be seen: what Redact leaves, with
// a number behind it where several URLs share that.
func Names(urls []string) []string { return names(urls) }

// Scrubber cleans what comes of one node's URL, for those who ask a node without a Set.
type Scrubber struct{ scrubber }

// NewScrubber returns the Scrubber of a URL.
func NewScrubber(raw string) Scrubber { return Scrubber{newScrubber(raw)} }

// Text returns s without the URL's secrets, on one line and of bounded length.
func (s Scrubber) Text(text string) string { return s.text(text) }

// CallError translates what a call of go-ethereum's client returned. The result holds
// none of the URL's secrets and wraps one of the reasons of this package, or ErrNoBlock.
func (s Scrubber) CallError(err error) error { return s.callError(err) }
