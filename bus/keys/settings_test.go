package keys

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/ommer/ommer/schema"
)

func TestSettings(t *testing.T) {
	many := make([]string, MaxList+1)
	for i := range many {
		many[i] = fmt.Sprintf("n%d", i)
	}
	for _, c := range []struct {
		name string
		s    Settings
		want string // in the error, empty for none
	}{
		{"none", Settings{}, ""},
		{"all", Settings{1, 2, []string{"*"}, []string{"mainnet", "a-b_C1"}, []string{schema.UncleByHash.String()}, 3}, ""},
		{"most", Settings{Rate: MaxRate, Burst: MaxRate, Networks: many[1:]}, ""},
		{"negative rate", Settings{Rate: -1}, "rate: -1: want 1 to 1000000 calls per second"},
		{"high rate", Settings{Rate: MaxRate + 1}, "rate: 1000001: want"},
		{"negative burst", Settings{Rate: 1, Burst: -1}, "burst: -1: want"},
		{"high burst", Settings{Rate: 1, Burst: MaxRate + 1}, "burst: 1000001: want"},
		{"burst alone", Settings{Burst: 5}, "burst: 5: it needs a rate"},
		{"negative connections", Settings{MaxConns: -1}, "max-conns: -1: want 1 to 1000000 WebSockets"},
		{"many connections", Settings{MaxConns: MaxMaxConns + 1}, "max-conns: 1000001: want"},
		{"long list", Settings{Networks: many}, "networks: 31 are too many: want 30 at most"},
		{"empty member", Settings{Origins: []string{""}}, `origins: "": want scheme://host`},
		{"no network", Settings{Networks: []string{"main net"}}, `networks: "main net": want`},
		{"not a method", Settings{Methods: []string{"eth getUncle"}}, `methods: "eth getUncle": want`},
		{"unknown method", Settings{Methods: []string{"eth_call"}}, `methods: "eth_call" is not served: want eth_getUncleByBlockNumberAndIndex or eth_getUncleByBlockHashAndIndex`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := c.s.Validate(); err != nil {
				got = err.Error()
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCheckOrigin(t *testing.T) {
	const none = "want scheme://host or"
	for in, want := range map[string]string{
		"*":                      "",
		"https://a.example":      "",
		"http://localhost:3000":  "",
		"https://*.a.example":    "",
		"https://*.a.example:99": "",
		"http://127.0.0.1:8080":  "",
		"http://[::1]:8080":      "",
		"chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn": "",
		"http://a.example:443":                                "",
		"":                                                    none,
		"null":                                                none,
		"a.example":                                           none,
		"https://":                                            none,
		"https://*":                                           none,
		"https://a.*.example":                                 none,
		"https://a*.example":                                  none,
		"https://*.*.example":                                 none,
		"https://*.":                                          none,
		"https://a..example":                                  none,
		"https://user@a.example":                              none,
		"https://ä.example":                                   none,
		"https://a.example:x":                                 none,
		"https://a.example\r\nX: y":                           none,
		"https://a.example/":                                  "write https://a.example",
		"https://A.example":                                   "write https://a.example",
		"HTTPS://*.A.example/x?y":                             "write https://*.a.example",
		"https://a.example:443":                               "write https://a.example",
		"ws://[::1]:80":                                       "write ws://[::1]",
		"https://a.example:0":                                 "0 is no port",
		"https://a.example:08443":                             "08443 is no port",
		"https://a.example:65536":                             "65536 is no port",
		"https://[1.2.3.4]":                                   "no IPv6 address",
		"https://[0:0::1]":                                    "write the address as [::1]",
		"https://" + strings.Repeat("a", MaxOrigin):           "255 at most",
	} {
		t.Run(in, func(t *testing.T) {
			got := ""
			if err := checkOrigin(in); err != nil {
				got = err.Error()
			}
			if (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestAllowsOrigin(t *testing.T) {
	some := []string{"https://a.example", "https://*.b.example", "http://*.c.example:8080"}
	for _, c := range []struct {
		list []string
		got  string
		want string // empty: refused
	}{
		{nil, "https://x.example", "*"},
		{nil, "", "*"},
		{[]string{"*"}, "https://x.example", "*"},
		{[]string{"*"}, "", "*"},
		{some, "https://a.example", "https://a.example"},
		{some, "https://x.b.example", "https://x.b.example"},
		{some, "https://y.x.b.example", "https://y.x.b.example"},
		{some, "http://x.c.example:8080", "http://x.c.example:8080"},
		{some, "", ""},
		{some, "null", ""},
		{some, "https://A.example", ""},
		{some, "http://a.example", ""},
		{some, "https://a.example:8443", ""},
		{some, "https://a.example.evil", ""},
		{some, "https://x.a.example", ""},
		{some, "https://b.example", ""},
		{some, "https://.b.example", ""},
		{some, "https://x..b.example", ""},
		{some, "https://evilb.example", ""},
		{some, "http://x.b.example", ""},
		{some, "https://x.b.example:8443", ""},
		{some, "https://evil/.b.example", ""},
		{some, "https://evil:1.b.example", ""},
		{some, "https://evil@x.b.example", ""},
		{some, "https://*.b.example", ""},
		{some, "http://x.c.example", ""},
	} {
		t.Run(strings.Join(c.list, " ")+" "+c.got, func(t *testing.T) {
			var e Entry
			e.apply(Settings{Origins: c.list})
			got, ok := e.AllowsOrigin([]byte(c.got))
			if got != c.want || ok != (c.want != "") {
				t.Errorf("got %q %v, want %q", got, ok, c.want)
			}
		})
	}
}

func TestEntryAllows(t *testing.T) {
	var e Entry
	if !e.AllowsNetwork("mainnet") || !e.AllowsMethod(schema.UncleByHash) {
		t.Error("no settings refuse something")
	}
	e.apply(Settings{Networks: []string{"sepolia", "holesky"}, Methods: []string{schema.UncleByHash.String()}})
	if e.AllowsNetwork("mainnet") || e.AllowsNetwork("") || !e.AllowsNetwork("holesky") {
		t.Error("networks")
	}
	if e.AllowsMethod(schema.UncleByNumber) || !e.AllowsMethod(schema.UncleByHash) {
		t.Error("methods")
	}
	// A list of methods that only a later version serves is not an empty one.
	e.apply(Settings{Methods: []string{"eth_later"}})
	if e.AllowsMethod(schema.UncleByNumber) || e.AllowsMethod(schema.UncleByHash) {
		t.Error("unknown methods allow known ones")
	}
}

// TestApply: a new rate begins without debts, anything else leaves them, and only
// origins and networks are news to what is open.
func TestApply(t *testing.T) {
	var e Entry
	full := func() bool { return e.budget.full.Load() == 0 }
	for _, c := range []struct {
		name       string
		s          Settings
		news, full bool
	}{
		{"rate", Settings{Rate: 1}, false, true},
		{"the same", Settings{Rate: 1}, false, false},
		{"methods", Settings{Rate: 1, Methods: []string{"m"}}, false, false},
		{"origins", Settings{Rate: 1, Origins: []string{"*"}}, true, false},
		{"networks", Settings{Rate: 1, Networks: []string{"n"}}, true, false},
		{"burst", Settings{Rate: 1, Burst: 5, Networks: []string{"n"}}, false, true},
		{"none", Settings{}, true, true},
		{"none again", Settings{}, false, true},
	} {
		if got := e.apply(c.s); got != c.news {
			t.Errorf("%s: news %v, want %v", c.name, got, c.news)
		}
		if full() != c.full {
			t.Errorf("%s: full %v, want %v", c.name, full(), c.full)
		}
		e.Admit()
		e.Charge(99)
	}
	if e.rules.Load() != nil {
		t.Error("no settings still cost something")
	}
}

// FuzzOrigin: what is let in by a member is that member itself or, to a parser of
// URLs, a host below its domain, at its scheme and port.
func FuzzOrigin(f *testing.F) {
	f.Add("https://*.a.example", "https://x.a.example")
	f.Add("https://*.a.example:8443", "https://x.y.a.example:8443")
	f.Add("https://a.example", "https://a.example")
	f.Add("https://*.a.example", "https://evil/.a.example")
	f.Fuzz(func(t *testing.T, member, got string) {
		if checkOrigin(member) != nil || member == "*" {
			return
		}
		o := newOrigin(member)
		for _, got := range []string{got, strings.Replace(member, "*", got, 1)} {
			allowed, ok := o.match([]byte(got))
			if !ok {
				if got == member && !strings.Contains(member, "*") {
					t.Errorf("%q does not match itself", member)
				}
				continue
			}
			if allowed != got {
				t.Errorf("%q is told that it is %q", got, allowed)
			}
			if got == member {
				continue
			}
			want, err := url.Parse(strings.Replace(member, "*", "x", 1))
			if err != nil {
				t.Fatal(err)
			}
			have, err := url.Parse(got)
			if err != nil {
				t.Fatalf("%q lets %q in: %v", member, got, err)
			}
			domain := strings.TrimPrefix(want.Host, "x")
			if have.Scheme != want.Scheme || !strings.HasSuffix(have.Host, domain) || have.Host == domain || have.User != nil || have.Path != "" || have.RawQuery != "" || have.Fragment != "" {
				t.Errorf("%q lets %q in", member, got)
			}
		}
	})
}
