package keys

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// anyOrigin is the member of Settings.Origins that allows everything, and the
// value of Access-Control-Allow-Origin that does.
const anyOrigin = "*"

// errOrigin is what is said of a text that resembles no origin.
var errOrigin = errors.New("want scheme://host or scheme://host:port, https://*.example.com for subdomains, or * for any")

// originForm is an origin as RFC 6454 section 6.2 has browsers write it, or with
// "*." before the host. Only schemes with a host have origins that can be told
// apart: extensions and apps are among them, files are not.
var originForm = regexp.MustCompile(`^([a-z][a-z0-9+.-]*)://((?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::([0-9]+))?$`)

// defaultPorts are left out of an origin.
var defaultPorts = map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443"}

// checkOrigin reports what browsers would never send, and how they write it.
func checkOrigin(s string) error {
	if s == anyOrigin {
		return nil
	}
	if len(s) > MaxOrigin {
		return fmt.Errorf("it has %d bytes, want %d at most", len(s), MaxOrigin)
	}
	m := originForm.FindStringSubmatch(s)
	if m == nil {
		// The likely mistakes: what the address bar of a browser shows.
		scheme, rest, _ := strings.Cut(strings.ToLower(s), "://")
		rest, _, _ = strings.Cut(rest, "/")
		if better := scheme + "://" + rest; better != s && checkOrigin(better) == nil {
			return fmt.Errorf("an origin has no path and no capital letters: write %s", better)
		}
		return errOrigin
	}
	scheme, host, port := m[1], m[2], m[3]
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
			return fmt.Errorf("%s is no port", port)
		}
		if port == defaultPorts[scheme] {
			return fmt.Errorf("browsers leave out the default port: write %s://%s", scheme, host)
		}
	}
	if host[0] == '[' {
		a, err := netip.ParseAddr(host[1 : len(host)-1])
		if err != nil || !a.Is6() {
			return fmt.Errorf("%s is no IPv6 address", host)
		}
		if short := "[" + a.String() + "]"; short != host {
			return fmt.Errorf("browsers write the address as %s", short)
		}
	}
	return nil
}

// origin is a member of Settings.Origins: a text that is matched as it is, or a
// head and a tail with subdomains between them.
type origin struct {
	text       string
	head, tail string // of "https://*.example.com": "https://" and ".example.com"
}

// newOrigin takes what has passed checkOrigin.
func newOrigin(text string) origin {
	head, tail, ok := strings.Cut(text, "*")
	if !ok || text == anyOrigin {
		return origin{text: text}
	}
	return origin{text, head, tail}
}

// match says whether got is one, and what to name as the allowed origin then. It
// allocates for subdomains only.
func (o *origin) match(got []byte) (allowed string, ok bool) {
	switch {
	case o.text == anyOrigin:
		return o.text, true
	case o.head == "":
		return o.text, string(got) == o.text
	case len(got) > MaxOrigin || len(got) <= len(o.head)+len(o.tail):
		return "", false
	}
	middle := len(got) - len(o.tail)
	if string(got[:len(o.head)]) != o.head || string(got[middle:]) != o.tail || !areLabels(got[len(o.head):middle]) {
		return "", false
	}
	return string(got), true
}

// areLabels says whether b is labels of a host with single dots between them. So
// nothing in the place of subdomains can end the host early: no '/', ':' or '@'.
func areLabels(b []byte) bool {
	before := byte('.')
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '.' && before != '.':
		default:
			return false
		}
		before = c
	}
	return before != '.'
}
