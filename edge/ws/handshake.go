package ws

import (
	"crypto/sha1"
	"encoding/base64"
)

// Handshake is what the WebSocket part of an opening handshake says (RFC 6455
// section 4.2.1): the fields whose names begin with Sec-WebSocket. That the
// request is a GET of HTTP/1.1 with Upgrade: websocket and Connection: Upgrade is
// for the caller to see to, as are its path, its key and its Origin.
//
// Sec-WebSocket-Extensions and Sec-WebSocket-Protocol are ignored: the response
// names none. A browser that asked for a subprotocol then gives up by itself.
type Handshake struct {
	// Key and Version are the values of Sec-WebSocket-Key and
	// Sec-WebSocket-Version. They alias what Field was given.
	Key, Version []byte

	keys, versions uint8 // how many there were, 2 for more
}

// Refusal is the HTTP response that a bad handshake gets.
type Refusal struct {
	// Status is 400 or 426.
	Status int
	// Reason is a constant phrase for the response's body.
	Reason string
	// Fields are header fields that the response must have besides the usual
	// ones, each with its CRLF. RFC 9110 section 15.5.22 asks for the Upgrade,
	// RFC 6455 section 4.4 for the version.
	Fields string
}

// The refusals. They are shared and must not be changed.
var (
	refusedKey      = &Refusal{Status: 400, Reason: "invalid Sec-WebSocket-Key"}
	refusedRepeated = &Refusal{Status: 400, Reason: "repeated Sec-WebSocket header"}
	refusedVersion  = &Refusal{
		Status: 426,
		Reason: "unsupported Sec-WebSocket-Version",
		Fields: "Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
	}
)

const (
	keyBytes  = 16
	keyLength = 24 // base64 of keyBytes
	keyGUID   = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
)

// Field takes note of one header field of the request. It is to be shown all of
// them, and ignores those of other names.
func (h *Handshake) Field(name, value []byte) {
	switch {
	case isNamed(name, "sec-websocket-key"):
		h.Key, h.keys = value, min(h.keys+1, 2)
	case isNamed(name, "sec-websocket-version"):
		h.Version, h.versions = value, min(h.versions+1, 2)
	}
}

// Check returns nil when the connection may be upgraded. The version is judged
// first: a client of another one may have another kind of key.
func (h *Handshake) Check() *Refusal {
	switch {
	case h.keys > 1 || h.versions > 1:
		return refusedRepeated
	case string(h.Version) != "13":
		return refusedVersion
	case !validKey(h.Key):
		return refusedKey
	default:
		return nil
	}
}

// AppendUpgrade appends the response that turns the connection into a WebSocket,
// with the answer to the client's key. The key must have passed Check.
func AppendUpgrade(dst, key []byte) []byte {
	const head = "HTTP/1.1 101 Switching Protocols\r\n" +
		"Upgrade: websocket\r\n" +
		"Connection: Upgrade\r\n" +
		"Sec-WebSocket-Accept: "
	var challenge [keyLength + len(keyGUID)]byte
	n := copy(challenge[:keyLength], key)
	n += copy(challenge[n:], keyGUID)
	accept := sha1.Sum(challenge[:n])
	dst = append(dst, head...)
	dst = base64.StdEncoding.AppendEncode(dst, accept[:])
	return append(dst, "\r\n\r\n"...)
}

// validKey reports whether the key is 16 bytes in base64, as a client must send.
func validKey(key []byte) bool {
	if len(key) != keyLength {
		return false
	}
	var nonce [keyBytes + 2]byte // the decoder writes whole groups of three
	n, err := base64.StdEncoding.Decode(nonce[:], key)
	return err == nil && n == keyBytes
}

// isNamed compares a field name with one in lower case. Names are ASCII, so the
// folding of Unicode is not wanted.
func isNamed(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
