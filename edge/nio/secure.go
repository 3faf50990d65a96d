package nio

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

const (
	// maxRecord is the most plaintext in one TLS record (RFC 8446 section 5.1).
	maxRecord = 16 << 10
	// recordOverhead is more than any cipher suite of crypto/tls adds to one.
	recordOverhead = 128
)

// secure is the TLS side of a connection, and the net.Conn that crypto/tls has
// beneath it: the blocking connection during the handshake, the nbio one after it.
type secure struct {
	tls  *tls.Conn
	raw  net.Conn // nil after the handshake
	conn *Conn
	lent *[]byte // the read buffer of tls, while it has one of ours
}

// serverConfig is cfg as the loop needs it.
func serverConfig(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	// A reply of 1.5 KB would otherwise go out as two records, each with its
	// own system call.
	cfg.DynamicRecordSizingDisabled = true
	if cfg.NextProtos == nil {
		cfg.NextProtos = []string{"http/1.1"}
	}
	return cfg
}

// read decrypts what is there.
func (s *secure) read(p []byte) (int, error) {
	var n int
	err := s.fill()
	if err == nil {
		n, err = s.tls.Read(p)
	}
	switch {
	case n > 0:
		// An error beside it (the peer's close_notify follows) comes again.
		return n, nil
	case err == nil:
		return 0, ErrAgain
	case errors.Is(err, ErrAgain), errors.Is(err, io.EOF):
		s.reclaim()
		return 0, err
	default:
		s.conn.Close(err)
		return 0, err
	}
}

// Read is called by crypto/tls.
func (s *secure) Read(p []byte) (int, error) {
	if s.raw != nil {
		return s.raw.Read(p)
	}
	return s.conn.receive(p)
}

// Write is called by crypto/tls, also from within its Read to answer a KeyUpdate.
func (s *secure) Write(p []byte) (int, error) {
	if s.raw != nil {
		return s.raw.Write(p)
	}
	if err := s.conn.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close is not called: crypto/tls is never asked to close.
func (s *secure) Close() error {
	if s.raw != nil {
		return s.raw.Close()
	}
	s.conn.Close(nil)
	return nil
}

// LocalAddr returns the address that the peer connected to.
func (s *secure) LocalAddr() net.Addr {
	if s.raw != nil {
		return s.raw.LocalAddr()
	}
	return s.conn.nb.LocalAddr()
}

// RemoteAddr returns the peer's address.
func (s *secure) RemoteAddr() net.Addr {
	if s.raw != nil {
		return s.raw.RemoteAddr()
	}
	return s.conn.nb.RemoteAddr()
}

// SetDeadline does nothing, nor do the other two: the handshake's deadline is set
// on the blocking connection directly, later nothing blocks, and crypto/tls sets
// one itself when it sends close_notify, from which nbio would make a timer.
func (s *secure) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (s *secure) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (s *secure) SetWriteDeadline(time.Time) error { return nil }
