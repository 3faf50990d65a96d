package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
)

// A key is 55 characters:
//
//	ommer_  the prefix, for people and for scanners of leaked secrets
//	43      the secret: 256 random bits as a number in base 62, most significant
//	        digit first, padded with '0'
//	6       the check: the CRC-32 (IEEE) of the 49 characters before it, the same
//	        way
//
// The digits of base 62 are 0-9, A-Z, a-z. The check finds every mistyped
// character, so a tool can refuse a typo without asking anybody.
const (
	prefix     = "ommer_"
	secretLen  = 43 // 62^43 > 2^256
	checkLen   = 6  // 62^6 > 2^32
	secretBits = 256
	digits     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

	// Len is the length of a key in bytes.
	Len = len(prefix) + secretLen + checkLen
)

// ErrMalformed is returned for a key that is mistyped, or none. The text never repeats it.
var ErrMalformed = errors.New("malformed API key")

// New makes a key.
func New() string {
	var b [secretBits / 8]byte
	// It never fails: without a source of randomness the process ends.
	_, _ = rand.Read(b[:])
	s := prefix + base62(new(big.Int).SetBytes(b[:]), secretLen)
	return s + check(s)
}

// Check says whether the key is written right: nil, or an error that is
// ErrMalformed and tells what to look at. It says nothing about whether the key was
// ever issued.
func Check(key string) error {
	switch {
	case !strings.HasPrefix(key, prefix):
		return fmt.Errorf("%w: it does not begin with %s", ErrMalformed, prefix)
	case len(key) != Len:
		return fmt.Errorf("%w: it has %d characters, want %d", ErrMalformed, len(key), Len)
	case check(key[:Len-checkLen]) != key[Len-checkLen:]:
		return fmt.Errorf("%w: its check does not match, a character is mistyped", ErrMalformed)
	}
	return nil
}

// hash is what a key is known by.
type hash [sha256.Size]byte

func (h hash) String() string { return hex.EncodeToString(h[:]) }

// parseHash reads the name of a record in the bucket.
func parseHash(s string) (h hash, ok bool) {
	if len(s) != 2*len(h) {
		return h, false
	}
	n, err := hex.Decode(h[:], []byte(s))
	// One spelling only, so that no two records are for one key.
	return h, err == nil && n == len(h) && h.String() == s
}

// idLen is the length of an ID.
const idLen = 16

// id is the public name of a key: the first 64 bits of its hash. That tells nothing
// about the key, and a million keys share none (3 in 10^8).
func (h hash) id() string { return h.String()[:idLen] }

func check(s string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(s)))), checkLen)
}

// base62 writes n with that many digits. It uses up n.
func base62(n *big.Int, width int) string {
	out := make([]byte, width)
	base, digit := big.NewInt(int64(len(digits))), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.QuoRem(n, base, digit)
		out[i] = digits[digit.Int64()]
	}
	return string(out)
}
