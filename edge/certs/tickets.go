package certs

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
)

// ticketKeySize is that of crypto/tls, which derives from it a key for encryption and
// one for authentication.
const ticketKeySize = 32

// parseTicketKeys reads a key per line, in hex or base64 as `openssl rand` prints
// them. Its errors have nothing of what is there.
func parseTicketKeys(text []byte) ([][ticketKeySize]byte, error) {
	var keys [][ticketKeySize]byte
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		key, err := hex.DecodeString(string(line))
		if err != nil {
			key, err = base64.StdEncoding.DecodeString(string(line))
		}
		if err != nil || len(key) != ticketKeySize {
			return nil, fmt.Errorf("line %d: want %d bytes in hex or base64", number, ticketKeySize)
		}
		keys = append(keys, [ticketKeySize]byte(key))
	}
	if len(keys) == 0 {
		return nil, errors.New("no key in it")
	}
	return keys, nil
}
