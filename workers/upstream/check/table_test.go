package check

import (
	"bytes"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

var update = flag.Bool("update", false, "rewrite the golden tables")

// fixed replaces what is different each time.
func fixed(r Report, node string) Report {
	r.Node = node
	if r.Latency != nil {
		r.Latency.FirstMS, r.Latency.MedianMS = 41.234, 7.0815
	}
	if r.Head != nil {
		r.Head.AgeSeconds = 4
	}
	r.Seconds = 0.523
	return r
}

// TestTable compares tables of checked nodes with those in testdata.
func TestTable(t *testing.T) {
	chain := testChain()
	sound, pruned, liar, refusing := upstreamtest.Start(t, chain), upstreamtest.Start(t, chain[:len(chain)-1]), upstreamtest.Start(t, chain), upstreamtest.Start(t, chain)
	for _, n := range []*upstreamtest.Node{sound, pruned, liar} {
		n.SetFinalized(40)
	}
	results(sound, map[string]string{
		"web3_clientVersion": `"Geth/v1.17.8-stable/linux-amd64/go1.26.8"`, "eth_syncing": "false", "eth_getBalance": `"0x0"`,
	})
	pruned.SetFinalized(-1)
	results(pruned, map[string]string{"web3_clientVersion": `"Nethermind/v1.39.0+ab12cd34/linux-x64/dotnet10.0.1"`, "eth_syncing": `{"currentBlock":"0x1"}`})
	pruned.Falsify(func(_, block string, _ int, object map[string]any) (map[string]any, error) {
		if below(20, block) {
			return nil, nil
		}
		return object, nil
	})
	liar.Falsify(func(_, _ string, index int, object map[string]any) (map[string]any, error) {
		if index >= 0 && object != nil {
			object["extraData"] = "0x00"
		}
		return object, nil
	})
	refusing.Handle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(w, upstreamtest.Secret, http.StatusUnauthorized)
	})
	reports := check(t, soon, sound.URL, pruned.URL, liar.WSURL, refusing.URL)
	for i, name := range []string{
		"http://10.0.0.7:8545", "https://a-rather-long-name.of-a-node.example.org", "wss://mainnet.example.org", "https://h.example",
	} {
		reports[i] = fixed(reports[i], name)
	}
	for name, list := range map[string][]Report{"one": reports[:1], "two": reports[:2], "four": reports} {
		var got bytes.Buffer
		if err := Print(&got, list, false); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, &got, want)
		}
		for line := range strings.Lines(got.String()) {
			if n := len([]rune(line)) - 1; n > lineWidth {
				t.Errorf("%s: a line of %d characters", name, n)
			}
		}
	}
}

// TestColourSaysNothing takes the colours out of a table: nothing else is different.
func TestColourSaysNothing(t *testing.T) {
	chain := testChain()
	reports := check(t, soon, upstreamtest.Start(t, chain).URL, upstreamtest.Start(t, chain[:9]).URL)
	reports[1].Lookups, reports[1].Latency.MedianMS = None, 2000
	var without, with bytes.Buffer
	if err := Print(&without, reports, false); err != nil {
		t.Fatal(err)
	}
	if err := Print(&with, reports, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(with.String(), colours[bad]+"! none") || !strings.Contains(with.String(), colours[good]+"all") ||
		!strings.Contains(with.String(), colours[doubtful]+"! 2000 ms") {
		t.Errorf("no colours in\n%q", &with)
	}
	if got := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(with.String(), ""); got != without.String() {
		t.Errorf("got\n%s\nwant\n%s", got, &without)
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"a bb ccc", 5, []string{"a bb", "ccc"}},
		{"abcdefghijk l", 5, []string{"abcde", "fghij", "k l"}},
		{"é ü ö ä ß", 3, []string{"é ü", "ö ä", "ß"}},
	} {
		if got := wrap(tt.text, tt.width); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}
