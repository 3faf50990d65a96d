package networks

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"github.com/ommer/ommer/bus/process"
	"github.com/ommer/ommer/schema/network"
)

// List is a list of networks as a flag. In the file it is a list of mappings, on the
// command line and in the environment the same as a text, which JSON will do for.
type List []Network

// String returns the names, for logs.
func (l List) String() string { return strings.Join(l.Names(), ",") }

// Names are the names of the networks, in the order of the list.
func (l List) Names() []string {
	names := make([]string, len(l))
	for i := range l {
		names[i] = l[i].Name
	}
	return names
}

// Decode implements kong.MapperValue. What it says of a mistake has its place, as
// networks[1].hosts[0], and nothing of an upstream, which may hold a secret.
func (l *List) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("networks")
	if err != nil {
		return err
	}
	value := token.Value
	if text, ok := value.(string); ok {
		value = nil
		if yaml.Unmarshal([]byte(text), &value) != nil {
			return errors.New("not YAML: want a list such as [{name: mainnet}, {name: sepolia}]")
		}
	}
	*l, err = parse(value)
	return err
}

func parse(value any) (List, error) {
	items, ok := value.([]any)
	switch {
	case !ok || len(items) == 0:
		return nil, errors.New("networks: want a list of networks, such as [{name: mainnet}, {name: sepolia}]")
	case len(items) > MaxNetworks:
		return nil, fmt.Errorf("networks: there are %d, at most %d are possible", len(items), MaxNetworks)
	}
	list := make(List, len(items))
	names, hosts := map[string]string{}, map[string]string{} // and where they are
	for i, item := range items {
		n, err := parseNetwork(fmt.Sprintf("networks[%d]", i), item)
		if err != nil {
			return nil, err
		}
		if first, ok := names[n.Name]; ok {
			return nil, fmt.Errorf("%s.name: %s is the name of %s already", n.Entry, n.Name, first)
		}
		names[n.Name] = n.Entry
		for k, host := range n.Hosts {
			at := fmt.Sprintf("%s.hosts[%d]", n.Entry, k)
			if first, ok := hosts[host]; ok {
				return nil, fmt.Errorf("%s: %s is %s already", at, host, first)
			}
			hosts[host] = at
		}
		list[i] = n
	}
	return list, nil
}

// fields are what a network may have, in the order in which they are read: what is known
// by the name comes before what is said otherwise.
var fields = []struct {
	name string
	read func(n *Network, at string, value any) error
}{
	{"name", func(n *Network, at string, v any) error {
		name, ok := v.(string)
		if !ok {
			return mistake(at, "want a text")
		}
		var token process.Token
		if err := token.UnmarshalText([]byte(name)); err != nil {
			return mistake(at, err.Error())
		}
		n.Network = network.Named(name)
		return nil
	}},
	{"chain_id", func(n *Network, at string, v any) error {
		known := n.ChainID
		if err := number(&n.ChainID, at, v); err != nil {
			return err
		}
		if n.ChainID == 0 {
			return mistake(at, "no chain has ID 0; leave it out for that of the first node that answers")
		}
		if known != 0 && known != n.ChainID {
			return mistake(at, fmt.Sprintf("%s is chain %d, not %d; give another chain another name", n.Name, known, n.ChainID))
		}
		return nil
	}},
	{"hosts", func(n *Network, at string, v any) (err error) {
		n.Hosts, err = texts(at, v)
		for i, h := range n.Hosts {
			if n.Hosts[i], err = host(h); err != nil {
				return mistake(fmt.Sprintf("%s[%d]", at, i), err.Error())
			}
		}
		return err
	}},
	{"upstreams", func(n *Network, at string, v any) (err error) { n.Upstreams, err = texts(at, v); return err }},
	{"archive", func(n *Network, at string, v any) (err error) {
		n.Archive, err = texts(at, v)
		for i, path := range n.Archive {
			n.Archive[i] = kong.ExpandPath(path)
		}
		return err
	}},
	{"finality", func(n *Network, at string, v any) error { return number(&n.Finality, at, v) }},
	{"merged", func(n *Network, at string, v any) error { return number(&n.Merged, at, v) }},
}

func parseNetwork(at string, item any) (Network, error) {
	n := Network{Entry: at}
	m, ok := item.(map[string]any)
	if !ok {
		return n, mistake(at, "want a mapping, such as {name: mainnet}")
	}
	if _, ok := m["name"]; !ok {
		return n, mistake(at+".name", "is missing")
	}
	known := make([]string, len(fields))
	for i := range fields {
		known[i] = fields[i].name
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, key) {
			return n, mistake(at+"."+key, "unknown: a network has "+strings.Join(known, ", "))
		}
	}
	for _, f := range fields {
		if v, ok := m[f.name]; ok {
			if err := f.read(&n, at+"."+f.name, v); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func mistake(at, what string) error { return errors.New(at + ": " + what) }

// number takes a whole number that is not negative.
func number(to *uint64, at string, value any) error {
	switch v := value.(type) {
	case uint64:
		*to = v
		return nil
	case int64:
		if v >= 0 {
			*to = uint64(v)
			return nil
		}
	}
	return mistake(at, "want a whole number, 0 or more")
}

// texts takes a list of texts, or one alone.
func texts(at string, value any) ([]string, error) {
	if v, ok := value.(string); ok {
		value = []any{v}
	}
	items, ok := value.([]any)
	if !ok {
		return nil, mistake(at, "want a list of texts")
	}
	list := make([]string, len(items))
	for i, item := range items {
		if list[i], ok = item.(string); !ok || list[i] == "" {
			return nil, mistake(fmt.Sprintf("%s[%d]", at, i), "want a text, in quotes if it has a colon")
		}
	}
	return list, nil
}

// hostForm is the form of a name or an IPv4 address in lower case.
var hostForm = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// host is the form in which an edge looks names up: lower case, no dot at the end.
func host(name string) (string, error) {
	low := strings.ToLower(strings.TrimSuffix(name, "."))
	if len(low) > 253 || !hostForm.MatchString(low) {
		return "", fmt.Errorf("%q is no host name: want one without a port, such as sepolia.example.com", name)
	}
	return low, nil
}
