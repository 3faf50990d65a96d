package keys

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ommer/ommer/schema"
)

// Bounds of Settings.
const (
	// MaxRate is the highest Rate and Burst.
	MaxRate = 1_000_000
	// MaxMaxConns is the highest MaxConns.
	MaxMaxConns = 1_000_000
	// MaxList is how many origins, networks or methods a key may have; Infura
	// allows as many.
	MaxList = 30
	// MaxOrigin is the length of the longest origin, in bytes.
	MaxOrigin = 255
)

// Settings restrict a key. What is empty restricts nothing, and so does the zero
// value.
type Settings struct {
	// Rate is how many calls a second each edge lets through.
	Rate int `json:"rate,omitempty"`
	// Burst is how many calls each edge lets through at once after a pause. 0 is as
	// many as Rate.
	Burst int `json:"burst,omitempty"`
	// Origins are the web pages that may use the key: origins as browsers write
	// them, https://*.example.com for all subdomains, or * for any. What says no
	// origin is refused too, unless there is a *: a key that stands in a page's
	// source is not meant for anything else (Infura, Alchemy and others do so).
	Origins []string `json:"origins,omitempty"`
	// Networks are those on which the key is good.
	Networks []string `json:"networks,omitempty"`
	// Methods are those that may be called.
	Methods []string `json:"methods,omitempty"`
	// MaxConns is how many WebSockets each edge lets be open at a time. 0 is the
	// edge's own limit for keys.
	MaxConns int `json:"max-conns,omitempty"`
}

// Unrestricted says whether nothing is restricted.
func (s *Settings) Unrestricted() bool {
	return s.Rate == 0 && s.MaxConns == 0 && len(s.Origins)+len(s.Networks)+len(s.Methods) == 0
}

// The written forms of networks and methods. A network is what --network takes.
var (
	networkForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	methodForm  = regexp.MustCompile(`^[A-Za-z0-9_.]{1,64}$`)
)

// SettingError says which setting is wrong, by the name of its member in JSON, and
// why.
type SettingError struct {
	Setting string
	Err     error
}

// Error returns both.
func (e *SettingError) Error() string { return e.Setting + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *SettingError) Unwrap() error { return e.Err }

func settingErrorf(setting, format string, args ...any) error {
	return &SettingError{setting, fmt.Errorf(format, args...)}
}

// Validate reports settings that a key cannot be given, with a SettingError.
func (s *Settings) Validate() error {
	if err := s.check(); err != nil {
		return err
	}
	for _, name := range s.Methods {
		if _, ok := schema.MethodNamed([]byte(name)); !ok {
			var known []string
			for _, m := range schema.Methods {
				known = append(known, m.String())
			}
			return settingErrorf("methods", "%q is not served: want %s", name, strings.Join(known, " or "))
		}
	}
	return nil
}

// check reports settings that mean nothing. A method that this version does not
// serve does mean something: another version may.
func (s *Settings) check() error {
	switch {
	case s.Rate < 0 || s.Rate > MaxRate:
		return settingErrorf("rate", "%d: want 1 to %d calls per second", s.Rate, MaxRate)
	case s.Burst < 0 || s.Burst > MaxRate:
		return settingErrorf("burst", "%d: want 1 to %d calls", s.Burst, MaxRate)
	case s.Burst > 0 && s.Rate == 0:
		return settingErrorf("burst", "%d: it needs a rate", s.Burst)
	case s.MaxConns < 0 || s.MaxConns > MaxMaxConns:
		return settingErrorf("max-conns", "%d: want 1 to %d WebSockets", s.MaxConns, MaxMaxConns)
	}
	for _, list := range []struct {
		name  string
		items []string
		check func(string) error
	}{
		{"origins", s.Origins, checkOrigin},
		{"networks", s.Networks, form(networkForm, "want 1 to 64 letters, digits, - and _")},
		{"methods", s.Methods, form(methodForm, "want the name of a method")},
	} {
		if n := len(list.items); n > MaxList {
			return settingErrorf(list.name, "%d are too many: want %d at most", n, MaxList)
		}
		for _, item := range list.items {
			if err := list.check(item); err != nil {
				return settingErrorf(list.name, "%q: %w", item, err)
			}
		}
	}
	return nil
}

func form(want *regexp.Regexp, hint string) func(string) error {
	return func(s string) error {
		if !want.MatchString(s) {
			return errors.New(hint)
		}
		return nil
	}
}

// rules are Settings in the form in which they are asked. They never change.
type rules struct {
	settings Settings
	pace     pace // zero for no rate
	origins  []origin
	methods  uint64 // one bit for each schema.Method
}

// newRules compiles settings that have passed check. Nil means no restriction.
func newRules(s Settings) *rules {
	if s.Unrestricted() {
		return nil
	}
	r := &rules{settings: s, pace: newPace(s.Rate, s.Burst)}
	for _, text := range s.Origins {
		r.origins = append(r.origins, newOrigin(text))
	}
	for _, name := range s.Methods {
		if m, ok := schema.MethodNamed([]byte(name)); ok {
			r.methods |= 1 << m
		}
	}
	return r
}

// rate and burst are what the budget depends on. A nil r has none.
func (r *rules) rate() (rate, burst int) {
	if r == nil {
		return 0, 0
	}
	return r.settings.Rate, r.settings.Burst
}

// sameAccess says whether both let the same in: their origins and networks.
func sameAccess(a, b *rules) bool {
	var none Settings
	s, t := &none, &none
	if a != nil {
		s = &a.settings
	}
	if b != nil {
		t = &b.settings
	}
	return slices.Equal(s.Origins, t.Origins) && slices.Equal(s.Networks, t.Networks)
}
