//go:build !linux

package nio

import (
	"errors"
	"net"
	"syscall"
)

// Other systems have SO_REUSEPORT too, but do not spread connections over the
// listeners, or have no way to leave one without losing any.
var errReusePort = errors.New("sharing a port is for Linux only")

func reusePort(string, string, syscall.RawConn) error { return errReusePort }

func turnAway(*net.TCPListener) error { return errReusePort }

func waiting(*net.TCPListener) int { return 0 }
