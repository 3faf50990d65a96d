package deploy

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/ommer/ommer/bus/networks"
	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/schema/network"
)

// networksOf reads a file as the programs do.
func networksOf(t *testing.T, path string) networks.List {
	t.Helper()
	var c struct {
		networks.Flags  `embed:""`
		process.Options `embed:""`
	}
	_, err := process.Parse(&c, []string{"--config", path}, process.Program{
		Name: "test", AdminDefault: "127.0.0.1:0", Out: io.Discard, Err: io.Discard, Vars: kong.Vars{"network": "none"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.Networks
}

// The example can be used as it is, and says of the networks what is known of them.
func TestNetworksExample(t *testing.T) {
	list := networksOf(t, "networks.yaml")
	if got, want := list.Names(), []string{"mainnet", "sepolia", "classic"}; !slices.Equal(got, want) {
		t.Fatalf("networks %q, want %q", got, want)
	}
	for _, n := range list {
		known, ok := network.Known(n.Name)
		if !ok || n.Network != known {
			t.Errorf("%+v, want %+v", n.Network, known)
		}
		if len(n.Upstreams) != 1 || !slices.Contains(n.Hosts, n.Name+".localhost") {
			t.Errorf("%s: upstreams %q, hosts %q", n.Name, n.Upstreams, n.Hosts)
		}
	}
}

// What is commented out in the example is right too.
func TestNetworksExampleInFull(t *testing.T) {
	text, err := os.ReadFile("networks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	full := regexp.MustCompile(`(?m)^(  (?:  )?)# (- name: |archive: |  [a-z_]+: )`).ReplaceAll(text, []byte("$1$2"))
	path := filepath.Join(t.TempDir(), "networks.yaml")
	if err := os.WriteFile(path, full, 0o600); err != nil {
		t.Fatal(err)
	}
	list := networksOf(t, path)
	if len(list) != 4 {
		t.Fatalf("networks %q", list.Names())
	}
	if got, want := list[3].Network, (network.Network{Name: "mine", ChainID: 1337, Merged: 100}); got != want || len(list[3].Upstreams) != 1 {
		t.Errorf("%+v, want %+v", list[3], want)
	}
	if got := list[0].Archive; !slices.Equal(got, []string{"/srv/ommer/mainnet.uncles"}) {
		t.Errorf("archive of main net: %q", got)
	}
}
