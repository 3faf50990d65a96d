package transcript

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// acts are what can happen in a conversation besides words:
//
//	hold               lookups are kept back from now on
//	waiting N          wait until N blocks are being looked up
//	release            lookups go on
//	fail FAULT BLOCK   lookups of a block fail, see Fault
//	unfinalize         there is neither a safe nor a finalized block
//	asked N            N lookups have been made since the first line
//	revoke             the conversation's key is revoked, and the edge knows it
//	stop               the edge is told to stop, and accepts no more connections
//	hang up            the client ends its side of the connection
//	given up           wait until the edge has given up on a client that does not read
var acts = regexp.MustCompile(`^(hold|waiting \d+|release|fail (pruned|bodiless|overloaded|unreachable|untrue) 0x[0-9a-f]+|` +
	`unfinalize|asked \d+|revoke|stop|hang up|given up)$`)

// Acts that must be prepared for before the first line.
const (
	revoke  = "revoke"
	stop    = "stop"
	givenUp = "given up"
)

// act does what a line says.
func (p *play) act(line string) {
	p.t.Helper()
	source := p.world.Source()
	words := strings.Fields(line)
	switch words[0] {
	case "hold":
		source.Hold()
	case "waiting":
		p.eventually(line, func() error {
			if n := source.Waiting(); strconv.Itoa(n) != words[1] {
				return fmt.Errorf("%d are", n)
			}
			return nil
		})
	case "release":
		source.Release()
	case "fail":
		n, err := strconv.ParseUint(words[2], 0, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		source.Fail(Fault(words[1]), n)
	case "unfinalize":
		source.Unfinalize()
	case "asked":
		if n := source.Asked(); n >= 0 && strconv.Itoa(n-p.asked) != words[1] {
			p.t.Errorf("%s: %d lookups were made, want %s", p.c.title, n-p.asked, words[1])
		}
	case "revoke":
		p.revoke()
		p.eventually("the key to be refused", func() error { return p.keyIs(false) })
	case "stop":
		p.edge.Stop()
		for _, addr := range []string{p.edge.HTTP, p.edge.HTTPS} {
			p.eventually("connections to be refused", func() error {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					return nil
				}
				return fmt.Errorf("%s takes them, %w", addr, c.Close())
			})
		}
	case "hang":
		p.speaker.hangUp()
	case "given":
		p.eventually("the edge to give up", func() error {
			if p.gaveUp() == p.stalled {
				return errNotYet
			}
			return nil
		})
	}
}

// keyIs is nil when the conversation's key is good, or is not.
func (p *play) keyIs(good bool) error {
	c, err := dial(p.t.Context(), p.edge.HTTP, nil, false)
	if err != nil {
		return err
	}
	defer c.close()
	// Of all requests this one asks least of a key.
	c.send(fmt.Appendf(nil, "OPTIONS /v3/%s HTTP/1.1\r\nHost: localhost\r\n\r\n", p.key))
	if lines, status := c.response(true); (status != 401) != good {
		return fmt.Errorf("%q", lines)
	}
	return nil
}

// gaveUp is how often the edge has given up on a client that does not read.
func (p *play) gaveUp() int {
	p.t.Helper()
	text, err := p.edge.Metrics()
	if err != nil {
		p.t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^ommer_edge_sessions_ended_total\{reason="client does not read"\} ([0-9]+)$`).FindStringSubmatch(text)
	if m == nil {
		p.t.Fatal("there is no such metric")
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// eventually waits until ok returns nil.
func (p *play) eventually(what string, ok func() error) {
	p.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		err := ok()
		if err == nil {
			return
		}
		if time.Since(began) > patience {
			p.t.Fatalf("%s: waited in vain for %s: %v", p.c.title, what, err)
		}
	}
}
