package schema

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/ommer/ommer/schema/jsonrpc"
)

// The rules for parameters are go-ethereum's, which callers were written
// against: rpc/json.go (parsePositionalArguments), rpc/types.go (BlockNumber) and
// common/hexutil. So are the messages, without the names of Go types. Like there,
// what stands between the quotes of a string is taken as it is, escapes included;
// none of the accepted values has a reason to contain one.

// What can be wrong with a value.
const (
	nonString     = "non-string"
	emptyString   = "empty hex string"
	missingPrefix = "hex string without 0x prefix"
	emptyNumber   = `hex string "0x"`
	leadingZero   = "hex number with leading zero digits"
	over64Bits    = "hex number > 64 bits"
	over63Bits    = "block number larger than int64"
	oddLength     = "hex string of odd length"
	badDigits     = "invalid hex string"
)

// ParseParams reads the parameters of a call of m: the block, then the index of
// the uncle. Raw is the raw JSON of the params member, nil when there is none; it
// must be valid JSON, as what package jsonrpc returns is. The first parameter that
// is wrong is the one reported, and only then whether there are too many.
func ParseParams(m Method, raw []byte) (Question, *jsonrpc.Error) {
	raw = trimSpace(raw)
	if len(raw) == 0 || raw[0] == 'n' {
		return Question{}, missing(0)
	}
	if raw[0] != '[' {
		return Question{}, nonArray()
	}
	rest := trimSpace(raw[1:])

	block, rest, err := parseBlock(m, rest)
	if err != nil {
		return Question{}, err
	}
	rest, more := nextParam(rest)
	if !more {
		return Question{}, missing(1)
	}
	index, rest, err := parseIndex(rest)
	if err != nil {
		return Question{}, err
	}
	if _, more = nextParam(rest); more {
		return Question{}, tooMany(2)
	}
	return Question{Block: block, Index: index}, nil
}

// ParseNoParams reads the parameters of a call that takes none. Raw is as for
// ParseParams.
func ParseNoParams(raw []byte) *jsonrpc.Error {
	raw = trimSpace(raw)
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return nil
	case raw[0] != '[':
		return nonArray()
	case !bytes.HasPrefix(trimSpace(raw[1:]), []byte{']'}):
		return tooMany(0)
	}
	return nil
}

// AppendParams appends the parameters that ask q, as ParseParams reads them.
func AppendParams(dst []byte, q Question) []byte {
	dst = append(dst, '[', '"')
	dst = q.Block.appendText(dst)
	dst = append(dst, `","0x`...)
	dst = strconv.AppendUint(dst, q.Index, 16)
	return append(dst, '"', ']')
}

// parseBlock reads the first parameter and returns what follows it.
func parseBlock(m Method, in []byte) (Selector, []byte, *jsonrpc.Error) {
	text, rest, kind := takeParam(in)
	if kind == absent {
		return Selector{}, nil, missing(0)
	}
	if m == UncleByHash {
		if kind != quoted {
			return Selector{}, nil, invalid(0, nonString)
		}
		hash, wrong := parseHash(text)
		if wrong != "" {
			return Selector{}, nil, invalid(0, wrong)
		}
		return BlockHash(hash), rest, nil
	}
	if kind != quoted {
		// go-ethereum reads whatever is not quoted as if it were.
		return Selector{}, nil, invalid(0, missingPrefix)
	}
	if tag, ok := tagNamed(text); ok {
		return Tagged(tag), rest, nil
	}
	number, wrong := parseBlockNumber(text)
	if wrong != "" {
		return Selector{}, nil, invalid(0, wrong)
	}
	return Number(number), rest, nil
}

// parseIndex reads the second parameter and returns what follows it.
func parseIndex(in []byte) (uint64, []byte, *jsonrpc.Error) {
	text, rest, kind := takeParam(in)
	switch kind {
	case absent:
		return 0, nil, missing(1)
	case other:
		return 0, nil, invalid(1, nonString)
	}
	digits, wrong := numberDigits(text)
	if wrong != "" {
		return 0, nil, invalid(1, wrong)
	}
	// Unlike for a block, the length counts before the digits do.
	if len(digits) > 16 {
		return 0, nil, invalid(1, over64Bits)
	}
	index, wrong := parseDigits(digits)
	if wrong != "" {
		return 0, nil, invalid(1, wrong)
	}
	return index, rest, nil
}

// paramKind is what takeParam found.
type paramKind uint8

const (
	absent paramKind = iota // null, or the end of the array
	quoted                  // a string
	other                   // any other value; it is never read further
)

// takeParam reads the parameter that in begins with. For a string it returns what
// is between the quotes, and what follows it.
func takeParam(in []byte) (text, rest []byte, kind paramKind) {
	if len(in) == 0 {
		return nil, nil, absent
	}
	switch in[0] {
	case ']', 'n':
		return nil, nil, absent
	case '"':
		for i := 1; i < len(in); i++ {
			switch in[i] {
			case '\\':
				i++
			case '"':
				return in[1:i], in[i+1:], quoted
			}
		}
	}
	return nil, nil, other
}

// nextParam steps over what separates parameters. More says that one follows.
func nextParam(in []byte) (rest []byte, more bool) {
	in = trimSpace(in)
	if len(in) == 0 || in[0] != ',' {
		return nil, false
	}
	return trimSpace(in[1:]), true
}

// trimSpace drops the white space that in begins with.
func trimSpace(in []byte) []byte {
	for len(in) > 0 && (in[0] == ' ' || in[0] == '\n' || in[0] == '\r' || in[0] == '\t') {
		in = in[1:]
	}
	return in
}

// parseBlockNumber is rpc.BlockNumber without its tags, which is
// hexutil.DecodeUint64 and a bound.
func parseBlockNumber(text []byte) (n uint64, wrong string) {
	digits, wrong := numberDigits(text)
	if wrong != "" {
		return 0, wrong
	}
	if n, wrong = parseDigits(digits); wrong != "" {
		return 0, wrong
	}
	if n > math.MaxInt64 {
		return 0, over63Bits
	}
	return n, ""
}

// numberDigits returns the digits of a quantity, at least one.
func numberDigits(text []byte) (digits []byte, wrong string) {
	switch {
	case len(text) == 0:
		return nil, emptyString
	case !hasPrefix(text):
		return nil, missingPrefix
	case len(text) == 2:
		return nil, emptyNumber
	case len(text) > 3 && text[2] == '0':
		return nil, leadingZero
	}
	return text[2:], ""
}

// parseDigits reads a number from the left, as strconv.ParseUint does: a digit
// too many is noticed before a bad one behind it.
func parseDigits(digits []byte) (n uint64, wrong string) {
	for _, c := range digits {
		d, ok := nibble(c)
		if !ok {
			return 0, badDigits
		}
		if n > math.MaxUint64>>4 {
			return 0, over64Bits
		}
		n = n<<4 | uint64(d)
	}
	return n, ""
}

// parseHash is hexutil.UnmarshalFixedJSON for a common.Hash. In an empty string
// it misses the length, not the prefix.
func parseHash(text []byte) (h Hash, wrong string) {
	var digits []byte
	if len(text) > 0 {
		if !hasPrefix(text) {
			return h, missingPrefix
		}
		digits = text[2:]
	}
	if len(digits)%2 != 0 {
		return h, oddLength
	}
	if len(digits) != hex.EncodedLen(len(h)) {
		return h, "hex string has length " + strconv.Itoa(len(digits)) + ", want 64 for common.Hash"
	}
	if _, err := hex.Decode(h[:], digits); err != nil {
		return Hash{}, badDigits
	}
	return h, ""
}

func hasPrefix(text []byte) bool {
	return bytes.HasPrefix(text, []byte("0x")) || bytes.HasPrefix(text, []byte("0X"))
}

func nibble(c byte) (d byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	default:
		return 0, false
	}
}

func nonArray() *jsonrpc.Error { return invalidParams("non-array args") }

func tooMany(most int) *jsonrpc.Error {
	return invalidParams("too many arguments, want at most " + strconv.Itoa(most))
}

func missing(argument int) *jsonrpc.Error {
	return invalidParams("missing value for required argument " + strconv.Itoa(argument))
}

func invalid(argument int, wrong string) *jsonrpc.Error {
	return invalidParams("invalid argument " + strconv.Itoa(argument) + ": " + wrong)
}

func invalidParams(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}
