package transcript

import (
	"strings"
	"testing"
)

func TestParseKeepsTheText(t *testing.T) {
	const text = `// A file.
# kind http
# --limit-body=100

== bad key: none
# --limit-batch=3
# only over HTTPS: for a reason
// Why.
! hold
--> POST /v3 HTTP/1.1
-->
<-- HTTP/1.1 401 Unauthorized
<--
<-- (end)
`
	f, err := Parse("a.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Text(); got != text {
		t.Errorf("got\n%s", got)
	}
	c := f.Conversations[0]
	if c.Row != "bad key" || c.Variant != "none" || strings.Join(c.Flags, " ") != "--limit-body=100 --limit-batch=3" || !c.ended() {
		t.Errorf("got %+v", c)
	}
	ways, err := c.waysOf(f.Kind)
	if err != nil || len(ways) != 1 || !ways[0].secure {
		t.Errorf("got %v, %v", ways, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no kind", "== a\n--> []\n<-- ?\n", "no kind"},
		{"no conversation", "# kind calls\n", "no conversation"},
		{"an unknown kind", "# kind songs\n", "x:1: unknown directive"},
		{"text before the first conversation", "# kind calls\n--> []\n", "x:2: not understood"},
		{"text without a mark", "# kind calls\n== a\n[]\n", `x:3: not understood: "[]"`},
		{"an arrow and no space", "# kind calls\n== a\n-->[]\n", "x:3: not understood"},
		{"an unknown directive", "# kind calls\n== a\n# louder\n", "x:3: unknown directive: louder"},
		{"a directive without its reason", "# kind calls\n== a\n# only over HTTP\n", "x:3: only over HTTP: no reason"},
		{"an unknown act", "# kind calls\n== a\n! dance\n--> []\n<-- ?\n", `unknown act "dance"`},
		{"an unknown fault", "# kind calls\n== a\n! fail tired 0x1\n--> []\n<-- ?\n", "unknown act"},
		{"a call without its answer", "# kind calls\n== a\n--> []\n--> []\n<-- ?\n", "line 4: each line sent"},
		{"an answer too many", "# kind calls\n== a\n--> []\n<-- ?\n<-- ?\n", "line 5: each line sent"},
		{"a call at the end", "# kind calls\n== a\n--> []\n<-- ?\n--> []\n", "nothing is heard"},
		{"nothing heard", "# kind http\n== a\n--> GET / HTTP/1.1\n", "nothing is heard"},
		{"no row", "# kind calls\n== : a\n--> []\n<-- ?\n", "a title is a row"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("x", tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	for line, want := range map[string]string{
		"":                      "",
		`{"a":{"b":[1]}}`:       `{"a":{"b":[1]}}`,
		"{0x0a}{0x00ff}":        "\n\x00\xff",
		"{x*3}{yz*2}":           "xxxyzyz",
		`[{{"a":1},*2}3]`:       `[{"a":1},{"a":1},3]`,
		"{{0x20}*3}|":           "   |",
		"{ab{0x0d0a}*2}":        "ab\r\nab\r\n",
		"/v3/{key}":             "/v3/KEY",
		`{"method":"{x*5}"}`:    `{"method":"xxxxx"}`,
		`{"a":"3*4"}`:           `{"a":"3*4"}`,
		"{[*4}{]*4}":            "[[[[]]]]",
		"{x*0}":                 "",
		`{0xG0}{0x0}{0xAB}{0x}`: `{0xG0}{0x0}{0xAB}{0x}`,
	} {
		got, err := expand(line, "KEY")
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", line, got, err, want)
		}
	}
	for _, line := range []string{"x*3}", "{x*99999999999999999999}", "{xxxxxxxx*99999999}"} {
		if got, err := expand(line, ""); err == nil {
			t.Errorf("%s: got %.40q", line, got)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"é漢🦄"}`: `{"a":"é漢🦄"}`,
		"a\n":         "a{0x0a}",
		"\xff\x00a":   "{0xff}{0x00}a",
		"\u2028":      "{0xe280a8}",
	} {
		if got := printable([]byte(in)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestEncodeFrame(t *testing.T) {
	for line, want := range map[string]string{
		"text Hello":     "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", // RFC 6455 section 5.7
		"ping":           "\x89\x80\x37\xfa\x21\x3d",
		"frame 01 Hello": "\x01\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
		"raw {0x8100}":   "\x81\x00",
		"close 1000":     "\x88\x82\x37\xfa\x21\x3d\x34\x12",
		`close 1000 "H"`: "\x88\x83\x37\xfa\x21\x3d\x34\x12\x69",
		"text {x*126}":   "\x81\xfe\x00\x7e\x37\xfa\x21\x3d" + strings.Repeat("\x4f\x82\x59\x45", 31) + "\x4f\x82",
	} {
		got, err := encodeFrame(line, "")
		if err != nil || string(got) != want {
			t.Errorf("%s: got %x, %v, want %x", line, got, err, want)
		}
	}
	for _, line := range []string{"shout x", "frame zz x", "close x", "close 1000 x"} {
		if _, err := encodeFrame(line, ""); err == nil {
			t.Errorf("%s: no error", line)
		}
	}
}
