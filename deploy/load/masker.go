package load

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// masker makes what a server said fit to be shown: a server or a proxy may quote the
// request with the key in its path, and may send what a terminal obeys.
type masker struct {
	keys []string // the longest first: one may begin another
}

// keyMask is shown in the place of a key.
const keyMask = "****"

// mostShown is how many characters of a text are shown.
const mostShown = 200

// leastPrefix is how many characters of a key, at the end of a text that was cut, are
// still masked.
const leastPrefix = 8

func newMasker(endpoints []Endpoint) masker {
	var m masker
	for _, e := range endpoints {
		key := e.key()
		plain, err := url.PathUnescape(key)
		if err != nil {
			plain = key
		}
		m.keys = append(m.keys, key, plain)
	}
	slices.SortFunc(m.keys, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m.keys = slices.DeleteFunc(slices.Compact(m.keys), func(key string) bool { return key == "" })
	return m
}

// mask returns the start of a text on one line, without keys and without anything that
// is not printed. What it returned before it leaves as it is.
func (m masker) mask(text string) string {
	for _, key := range m.keys {
		text = strings.ReplaceAll(text, key, keyMask)
	}
	for _, key := range m.keys {
		for n := min(len(key), len(text)); n >= leastPrefix; n-- {
			if rest, ok := strings.CutSuffix(text, key[:n]); ok {
				text = rest + keyMask
				break
			}
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	var b strings.Builder
	shown := 0
	for _, r := range text {
		part := string(r)
		switch {
		case unicode.IsPrint(r):
		case r < 0x80:
			part = fmt.Sprintf(`\x%02x`, r)
		default:
			part = fmt.Sprintf(`\u%04x`, r)
		}
		if shown += len([]rune(part)); shown > mostShown {
			break
		}
		b.WriteString(part)
	}
	return strings.TrimRight(b.String(), " ")
}

// clean makes a failure fit to be shown.
func (m masker) clean(f *Failure) *Failure {
	f.Detail = m.mask(f.Detail)
	return f
}
