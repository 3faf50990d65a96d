package main

import (
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/ommer/ommer/bus/networks"
	"github.com/ommer/ommer/schema"
)

// banner is what serve says on its standard output once it answers: everything
// that a newcomer needs for the first lookup. It is the one place that shows the
// development key, and it is not the log.
type banner struct {
	https, http   net.Addr // nil for none
	admin, nats   string
	key, certFile string // certFile is empty unless it is self-signed
	networks      networks.List
	example       schema.Question
}

func (b banner) print(w io.Writer) {
	fmt.Fprint(w, "\nOmmer is ready.\n\n")
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "  %-9s %s\n", name, value)
		}
	}
	if b.https != nil {
		row("HTTPS", "https://"+local(b.https)+"/v3/"+b.key)
		row("WSS", "wss://"+local(b.https)+"/ws/v3/"+b.key)
	}
	if b.http != nil {
		row("HTTP", "http://"+local(b.http)+"/v3/"+b.key)
		row("WS", "ws://"+local(b.http)+"/ws/v3/"+b.key)
	}
	row("API key", b.key)
	if len(b.networks) > 1 {
		for i, n := range b.networks {
			by := "for a Host header of " + strings.Join(n.Hosts, ", ")
			switch {
			case i == 0:
				by = "for any other Host header"
			case len(n.Hosts) == 0:
				by = "not reached: it has no hosts"
			}
			row("network", n.Name+", "+by)
		}
	}
	row("NATS", b.nats)
	if b.admin != "" {
		row("admin", "http://"+b.admin+"/readyz")
	}
	url, trust := "", ""
	switch {
	case b.https != nil:
		url = "https://" + local(b.https) + "/v3/" + b.key
		if b.certFile != "" {
			trust = "--cacert '" + b.certFile + "' "
		}
	default:
		url = "http://" + local(b.http) + "/v3/" + b.key
	}
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, b.example.Method(), schema.AppendParams(nil, b.example))
	fmt.Fprintf(w, "\nTry it:\n\n  curl %s-H 'Content-Type: application/json' -d '%s' %s\n\n", trust, call, url)
}

// local is an address as a client on this machine reaches it, under the name that
// the self-signed certificate has.
func local(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
