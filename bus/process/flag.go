package process

import (
	"errors"
	"net"
	"regexp"
	"strconv"
)

// Addr is an address to listen on, host:port or :port, as a flag. Empty is allowed.
type Addr string

// UnmarshalText checks the address.
func (a *Addr) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*a = ""
		return nil
	}
	_, port, err := net.SplitHostPort(string(text))
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return errors.New(strconv.Quote(string(text)) + " is no address: want host:port or :port")
	}
	*a = Addr(text)
	return nil
}

// Token is a name that can be part of a NATS subject, as a flag.
type Token string

var token = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// UnmarshalText checks the name.
func (t *Token) UnmarshalText(text []byte) error {
	if !token.Match(text) {
		return errors.New("want 1 to 64 letters, digits, - and _")
	}
	*t = Token(text)
	return nil
}

// fromEnv is how kong reports a value of the environment. Values may be secrets.
var fromEnv = regexp.MustCompile(`\(from envar (\w+)=.*\)`)
