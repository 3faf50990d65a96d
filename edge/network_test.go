package edge

import (
	"fmt"
	"testing"
)

// The network of a request is found without allocating.
func TestNetworkOfAllocates(t *testing.T) {
	n := manyNetworks(t)
	host := []byte("Network-7.Example:8443")
	if got := n.of(host).name; got != "network-7" {
		t.Fatalf("%s is for %s", host, got)
	}
	if got := testing.AllocsPerRun(100, func() { n.of(host) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func TestTooManyNetworks(t *testing.T) {
	cfg := Config{Others: make([]Network, maxNetworks)}
	if _, err := newNetworks(cfg); err == nil {
		t.Errorf("%d networks, and no number for the last", len(cfg.Others)+1)
	}
}

func BenchmarkNetworkOf(b *testing.B) {
	n := manyNetworks(b)
	for _, host := range []string{"network-7.example:8443", "unknown.example:8443"} {
		b.Run(host, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n.of([]byte(host))
			}
		})
	}
}

func manyNetworks(tb testing.TB) *networks {
	cfg := Config{Network: "network-0"}
	for i := 1; i < maxNetworks; i++ {
		cfg.Others = append(cfg.Others, Network{Name: fmt.Sprintf("network-%d", i), Hosts: []string{fmt.Sprintf("network-%d.example", i)}})
	}
	n, err := newNetworks(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return &n
}
