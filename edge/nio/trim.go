//go:build !notrim

package nio

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"reflect"
	"unsafe"
)

// crypto/tls keeps the buffer of the last record for as long as the connection
// lives, and that of the handshake with it: about half of what an idle connection
// takes. So it is lent a buffer for as long as there is something to read. The
// fields are found by name and type; where they are not what is expected, nothing
// is done and only the memory is lost. The build tag notrim leaves all of this out.

// tlsFields are the offsets of the buffers in tls.Conn.
type tlsFields struct {
	rawInput, hand, input uintptr
	known                 bool
}

var fields = findFields(reflect.TypeFor[tls.Conn]())

func findFields(t reflect.Type) tlsFields {
	raw, ok1 := t.FieldByName("rawInput")
	hand, ok2 := t.FieldByName("hand")
	input, ok3 := t.FieldByName("input")
	buffer, reader := reflect.TypeFor[bytes.Buffer](), reflect.TypeFor[bytes.Reader]()
	if !ok1 || !ok2 || !ok3 || raw.Type != buffer || hand.Type != buffer || input.Type != reader {
		return tlsFields{}
	}
	return tlsFields{rawInput: raw.Offset, hand: hand.Offset, input: input.Offset, known: true}
}

// buffers returns the connection's own: ciphertext, handshake messages, and the
// plaintext that aliases the first.
func (f tlsFields) buffers(t *tls.Conn) (raw, hand *bytes.Buffer, input *bytes.Reader) {
	p := unsafe.Pointer(t)
	return (*bytes.Buffer)(unsafe.Add(p, f.rawInput)),
		(*bytes.Buffer)(unsafe.Add(p, f.hand)),
		(*bytes.Reader)(unsafe.Add(p, f.input))
}

// fill reads ciphertext into a buffer for crypto/tls when all that it had has been
// used. Without an error there may be something for it to read. It also saves
// crypto/tls an allocation, and a call for nothing at the end of what is there.
func (s *secure) fill() error {
	if !fields.known {
		return nil
	}
	raw, _, input := fields.buffers(s.tls)
	if raw.Len() > 0 || input.Len() > 0 {
		return nil
	}
	if s.lent == nil {
		s.lent = s.conn.loop.buffers.Malloc(bufferSizes[0])
	} else if raw.Cap() > cap(*s.lent) { // a record did not fit
		raw.Reset()
		*s.lent = raw.AvailableBuffer()
	}
	b := (*s.lent)[:cap(*s.lent)]
	n, err := s.conn.receive(b)
	switch {
	case err == nil:
		*raw = *bytes.NewBuffer(b[:n])
	case errors.Is(err, io.EOF): // crypto/tls comes upon it itself
	default:
		return err
	}
	return nil
}

// reclaim takes the buffers away from crypto/tls if nothing is left in them.
func (s *secure) reclaim() {
	if !fields.known {
		return
	}
	raw, hand, input := fields.buffers(s.tls)
	if hand.Len() == 0 && hand.Cap() > 0 {
		*hand = bytes.Buffer{}
	}
	if raw.Len() > 0 || input.Len() > 0 {
		return
	}
	input.Reset(nil) // it aliases raw's array
	*raw = bytes.Buffer{}
	if s.lent != nil {
		s.conn.loop.buffers.Free(s.lent)
		s.lent = nil
	}
}
