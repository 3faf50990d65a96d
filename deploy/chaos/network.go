package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// The network: a bridge in the sandbox, at which every host hangs by a pair of virtual
// Ethernet devices. A host is a network namespace with an address. This program, its
// clients among it, is where the bridge is and has hubAddr.
const (
	bridge  = "hub"
	hubAddr = "10.77.0.1"
)

// tool runs one of the programs that the network is made with.
func tool(ctx context.Context, in, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(in)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// makeBridge makes the network without hosts.
func makeBridge(ctx context.Context) error {
	return tool(ctx, fmt.Sprintf("link set lo up\nlink add name %[1]s type bridge\naddr add %[2]s/24 dev %[1]s\nlink set %[1]s up\n",
		bridge, hubAddr), "ip", "-batch", "-")
}

// host is a machine of the deployment.
type host struct {
	name string
	addr string
}

// makeHost adds a machine to the network.
func makeHost(ctx context.Context, name, addr string) (host, error) {
	h := host{name, addr}
	if err := tool(ctx, fmt.Sprintf("netns add %[1]s\nlink add name v-%[1]s type veth peer name eth0 netns %[1]s\nlink set v-%[1]s master %[2]s up\n",
		name, bridge), "ip", "-batch", "-"); err != nil {
		return h, err
	}
	return h, tool(ctx, fmt.Sprintf("link set lo up\naddr add %s/24 dev eth0\nlink set eth0 up\n", addr), "ip", "-n", name, "-batch", "-")
}

// at returns a port of the host.
func (h host) at(port int) string { return fmt.Sprintf("%s:%d", h.addr, port) }

// run is how a program is run on the host. It is the program's own process: ip(8)
// becomes it.
func (h host) run(program string, args ...string) []string {
	return append([]string{"netns", "exec", h.name, program}, args...)
}

// Ways to hold back what travels between two hosts. Rules stand at one of them, and
// see what comes in before its TCP does, and what goes out after.
const (
	bothWays = iota
	fromPeer // what the peer sends does not come in
	toPeer   // what the host sends does not get out
)

// hold makes rules that drop part of the packets between the host and its peers, or all with
// percent 100. Table names the rules, so that others can stand beside them.
func (h host) hold(ctx context.Context, table string, way, percent int, peers ...host) error {
	addrs := make([]string, len(peers))
	for i, p := range peers {
		addrs[i] = p.addr
	}
	chance := ""
	if percent < 100 {
		chance = fmt.Sprintf("numgen random mod 100 < %d ", percent)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s {\n", table)
	for _, c := range []struct {
		hook, field string
		not         int
	}{{"input", "saddr", toPeer}, {"output", "daddr", fromPeer}} {
		if way == c.not {
			continue
		}
		fmt.Fprintf(&b, "chain %s {\ntype filter hook %s priority 0;\nip %s { %s } %sdrop\n}\n",
			c.hook, c.hook, c.field, strings.Join(addrs, ", "), chance)
	}
	b.WriteString("}\n")
	return h.rules(ctx, b.String())
}

// release takes the rules of a table away again.
func (h host) release(ctx context.Context, table string) error {
	return h.rules(ctx, "delete table inet "+table+"\n")
}

func (h host) rules(ctx context.Context, text string) error {
	return tool(ctx, text, "ip", h.run("nft", "-f", "-")...)
}
