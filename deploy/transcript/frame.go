package transcript

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// First bytes of frames, RFC 6455 section 5.2: FIN and the opcode.
var frameNames = map[byte]string{0x81: "text", 0x82: "binary", 0x88: "close", 0x89: "ping", 0x8a: "pong"}

// maskKey masks every frame; it is that of the RFC's example.
var maskKey = [4]byte{0x37, 0xfa, 0x21, 0x3d}

// appendFrame appends a masked frame.
func appendFrame(dst []byte, first byte, payload []byte) []byte {
	const masked = 0x80
	dst = append(dst, first)
	switch n := len(payload); {
	case n < 126:
		dst = append(dst, masked|byte(n))
	case n <= 0xffff:
		dst = binary.BigEndian.AppendUint16(append(dst, masked|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, masked|127), uint64(n))
	}
	dst = append(dst, maskKey[:]...)
	for i, b := range payload {
		dst = append(dst, b^maskKey[i%len(maskKey)])
	}
	return dst
}

// encodeFrame turns a line of a transcript into what goes out.
func encodeFrame(line, key string) ([]byte, error) {
	name, rest, _ := strings.Cut(line, " ")
	payload, err := expand(rest, key)
	if err != nil {
		return nil, err
	}
	var first byte
	switch name {
	case "raw":
		return payload, nil
	case "frame":
		hex, rest, _ := strings.Cut(string(payload), " ")
		n, err := strconv.ParseUint(hex, 16, 8)
		if err != nil {
			return nil, fmt.Errorf("the first byte of a frame is wanted: %w", err)
		}
		return appendFrame(nil, byte(n), []byte(rest)), nil
	case "close":
		if payload, err = encodeClose(string(payload)); err != nil {
			return nil, err
		}
	}
	for b, n := range frameNames {
		if n == name {
			first = b
		}
	}
	if first == 0 {
		return nil, fmt.Errorf("no frame is called %q", name)
	}
	return appendFrame(nil, first, payload), nil
}

// encodeClose returns the payload of a close frame: nothing, a code, or a code and a
// quoted reason.
func encodeClose(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	code, reason, quoted := strings.Cut(text, " ")
	n, err := strconv.ParseUint(code, 10, 16)
	if err == nil && quoted {
		reason, err = strconv.Unquote(reason)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(n)), reason...), err
}

// frame reads one frame and returns its line, or the ending.
func (c *conn) frame() (line string, payload []byte) {
	if err := c.wait(); err != nil {
		return ending(err), nil
	}
	head := make([]byte, 2)
	if _, err := io.ReadFull(c.in, head); err != nil {
		return ending(err), nil
	}
	length := uint64(head[1] & 0x7f)
	if n := map[uint64]int{126: 2, 127: 8}[length]; n > 0 {
		wide := make([]byte, 8)
		if _, err := io.ReadFull(c.in, wide[8-n:]); err != nil {
			return ending(err), nil
		}
		length = binary.BigEndian.Uint64(wide)
	}
	if length > maxRepeat || head[1]&0x80 != 0 {
		return fmt.Sprintf("(no frame of a server: %x, %d bytes)", head, length), nil
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(c.in, payload); err != nil {
		return ending(err), nil
	}
	name, known := frameNames[head[0]]
	switch {
	case !known:
		name = fmt.Sprintf("frame %02x", head[0])
	case name == "close" && length >= 2:
		name += " " + strconv.Itoa(int(binary.BigEndian.Uint16(payload)))
		if length > 2 {
			name += " " + strconv.Quote(string(payload[2:]))
		}
		return name, payload
	}
	return strings.TrimSuffix(name+" "+printable(payload), " "), payload
}
