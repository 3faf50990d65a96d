package networks_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/ommer/ommer/bus/networks"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/schema/network"
)

type cli struct {
	networks.Flags  `embed:""`
	process.Options `embed:""`
}

func parse(t *testing.T, args ...string) (networks.Flags, error) {
	t.Helper()
	var c cli
	_, err := process.Parse(&c, args, process.Program{Name: "prog", AdminDefault: "127.0.0.1:1", Out: io.Discard, Err: io.Discard, Vars: kong.Vars{"network": "mainnet"}})
	return c.Flags, err
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const several = `
log-level: warn
networks:
  - name: mainnet
    upstreams: [http://127.0.0.1:8545, "wss://user:secret@node.example"]
  - name: sepolia
    hosts: [Sepolia.Example.COM, sepolia.localhost.]
    upstreams: http://127.0.0.1:8546
    archive: /srv/sepolia.uncles
  - name: classic
    hosts: [classic.example.com]
    finality: 5000
  - {name: mine, chain_id: 0x539, hosts: [10.0.0.1], merged: 12}
  - name: other
`

var severalWant = networks.List{
	{Network: network.Network{Name: "mainnet", ChainID: 1, Merged: 15537394}, Entry: "networks[0]",
		Upstreams: []string{"http://127.0.0.1:8545", "wss://user:secret@node.example"}},
	{Network: network.Network{Name: "sepolia", ChainID: 11155111, Merged: 1450409}, Entry: "networks[1]",
		Hosts: []string{"sepolia.example.com", "sepolia.localhost"}, Upstreams: []string{"http://127.0.0.1:8546"}, Archive: []string{"/srv/sepolia.uncles"}},
	{Network: network.Network{Name: "classic", ChainID: 61, Finality: 5000}, Entry: "networks[2]", Hosts: []string{"classic.example.com"}},
	{Network: network.Network{Name: "mine", ChainID: 1337, Merged: 12}, Entry: "networks[3]", Hosts: []string{"10.0.0.1"}},
	{Network: network.Network{Name: "other"}, Entry: "networks[4]"},
}

func TestListOfTheFile(t *testing.T) {
	f, err := parse(t, "--config", file(t, several))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f.Networks, severalWant) {
		t.Errorf("got  %+v\nwant %+v", f.Networks, severalWant)
	}
}

// A text is read like the list of the file, from the command line and the environment.
func TestListAsText(t *testing.T) {
	text := several[strings.Index(several, "  - name"):]
	got, err := parse(t, "--networks", text)
	if err != nil || !reflect.DeepEqual(got.Networks, severalWant) {
		t.Errorf("YAML: %+v, %v", got, err)
	}
	t.Setenv("OMMER_NETWORKS", `[{"name":"mainnet"},{"name":"mine","chain_id":1337,"hosts":["mine.example"]}]`)
	if got, err = parse(t, "--config", file(t, several)); err != nil || got.Networks.String() != "mainnet,mine" || got.Networks[1].ChainID != 1337 {
		t.Errorf("JSON: %+v, %v", got, err)
	}
}

func TestChosen(t *testing.T) {
	path := file(t, several)
	for _, tt := range []struct {
		name string
		args []string
		want string // of them, and whether the first is an entry
	}{
		{"nothing", nil, "fallback"},
		{"a name", []string{"--network", "sepolia"}, "sepolia"},
		{"a list", []string{"--config", path}, "mainnet,sepolia,classic,mine,other"},
		{"one of a list", []string{"--config", path, "--network", "classic"}, "classic"},
	} {
		f, err := parse(t, tt.args...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Chosen("fallback")
		if err != nil || networks.List(got).String() != tt.want {
			t.Errorf("%s: %v, %v, want %s", tt.name, networks.List(got), err, tt.want)
		}
	}
	f, _ := parse(t, "--network", "mainnet")
	if got, _ := f.Chosen("x"); got[0].ChainID != 1 || got[0].Entry != "" {
		t.Errorf("--network mainnet: %+v", got)
	}
	if f, _ = parse(t, "--config", path, "--network", "classic"); f.Networks[2].Finality != 5000 {
		t.Errorf("classic: %+v", f.Networks[2])
	}
	f, _ = parse(t, "--config", path, "--network", "nowhere")
	_, err := f.Chosen("x")
	var usage process.Usage
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "nowhere") || !strings.Contains(err.Error(), "classic, mine") {
		t.Errorf("a network that is not in the list: %v", err)
	}
}

func TestMistakesNameTheField(t *testing.T) {
	for _, tt := range []struct {
		name, list string
		want       []string
	}{
		{"not a list", "networks: mainnet", []string{"--networks: networks: want a list"}},
		{"a mapping", "networks: {name: mainnet}", []string{"networks: want a list"}},
		{"empty", "networks: []", []string{"networks: want a list"}},
		{"nothing", "networks:", []string{"networks takes a single value or a list"}},
		{"a name alone", "networks: [mainnet]", []string{"networks[0]: want a mapping"}},
		{"no name", "networks: [{name: a}, {hosts: [x]}]", []string{"networks[1].name: is missing"}},
		{"a number as name", "networks: [{name: 1}]", []string{"networks[0].name: want a text"}},
		{"a bad name", "networks: [{name: a.b}]", []string{"networks[0].name: want 1 to 64 letters"}},
		{"a name twice", "networks: [{name: a}, {name: b}, {name: a}]", []string{"networks[2].name: a is the name of networks[0]"}},
		{"an unknown key", "networks: [{name: a, upstream: x}]", []string{"networks[0].upstream: unknown", "chain_id", "upstreams"}},
		{"another chain", "networks: [{name: sepolia, chain_id: 1}]", []string{"networks[0].chain_id: sepolia is chain 11155111, not 1"}},
		{"chain 0", "networks: [{name: a, chain_id: 0}]", []string{"networks[0].chain_id: no chain has ID 0"}},
		{"a negative chain", "networks: [{name: a, chain_id: -1}]", []string{"networks[0].chain_id: want a whole number"}},
		{"a chain in words", "networks: [{name: a, chain_id: one}]", []string{"networks[0].chain_id: want a whole number"}},
		{"half a block", "networks: [{name: a, merged: 1.5}]", []string{"networks[0].merged: want a whole number"}},
		{"finality", "networks: [{name: classic, finality: [1]}]", []string{"networks[0].finality: want a whole number"}},
		{"a port", "networks: [{name: a}, {name: b, hosts: ['b.example:8443']}]", []string{"networks[1].hosts[0]: \"b.example:8443\" is no host name"}},
		{"a URL", "networks: [{name: b, hosts: [a.example, 'https://b.example']}]", []string{"networks[0].hosts[1]: \"https://b.example\""}},
		{"a wildcard", "networks: [{name: b, hosts: ['*.example']}]", []string{"networks[0].hosts[0]"}},
		{"an empty label", "networks: [{name: b, hosts: [a..b]}]", []string{"networks[0].hosts[0]"}},
		{"a long name", "networks: [{name: b, hosts: [" + strings.Repeat("a.", 127) + "]}]", nil},
		{"too long a name", "networks: [{name: b, hosts: [" + strings.Repeat("a.", 127) + "a]}]", []string{"networks[0].hosts[0]"}},
		{"a host twice", "networks: [{name: a, hosts: [x]}, {name: b, hosts: [y, X.]}]", []string{"networks[1].hosts[1]: x is networks[0].hosts[0]"}},
		{"an empty host", "networks: [{name: a, hosts: ['']}]", []string{"networks[0].hosts[0]: want a text"}},
		{"hosts by number", "networks: [{name: a, hosts: 1}]", []string{"networks[0].hosts: want a list of texts"}},
		{"no upstream", "networks: [{name: a, upstreams: [x, null]}]", []string{"networks[0].upstreams[1]: want a text"}},
		{"too many", "networks: [" + strings.Repeat("{name: a},", networks.MaxNetworks+1) + "]", []string{"networks: there are 65, at most 64"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(t, "--config", file(t, tt.list+"\n"))
			if tt.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var usage process.Usage
			if !errors.As(err, &usage) {
				t.Fatalf("err = %v, want a Usage", err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not mention %q", err, w)
				}
			}
		})
	}
}

// What is wrong with a text is told without the text: it may hold secrets.
func TestMistakesOfTextsRepeatNothing(t *testing.T) {
	const text = "[{name: a, upstreams: [https://user:s3cret@node.example]"
	_, err := parse(t, "--networks", text)
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("err = %v", err)
	}
	t.Setenv("OMMER_NETWORKS", text)
	if _, err = parse(t); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "OMMER_NETWORKS") {
		t.Errorf("err = %v, want one that names OMMER_NETWORKS", err)
	}
}
