package process

import (
	"net"
	"os"
	"strconv"
	"strings"
)

// maxName keeps a name with its suffix within one token of a NATS subject.
const maxName = 48

// DefaultName names a process on the bus: its role, the host and the process id,
// in letters, digits, '-' and '_'.
func DefaultName(role string) Token {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	name := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			return c
		default:
			return '-'
		}
	}, role+"-"+host)
	return Token(name[:min(len(name), maxName)] + "-" + strconv.Itoa(os.Getpid()))
}

// AddrString is the text of an address that may be missing, for logs.
func AddrString(a net.Addr) string {
	if a == nil {
		return "none"
	}
	return a.String()
}
