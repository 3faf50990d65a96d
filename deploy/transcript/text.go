package transcript

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	repetition = regexp.MustCompile(`\*([0-9]+)\}`)
	hexBytes   = regexp.MustCompile(`\{0x((?:[0-9a-f]{2})+)\}`)
)

// maxRepeat bounds what a repetition may come to, against slips.
const maxRepeat = 64 << 20

// expand returns the bytes that a line stands for. Keys hold no brace.
func expand(line, key string) ([]byte, error) {
	line = strings.ReplaceAll(line, "{key}", key)
	for {
		m := repetition.FindStringSubmatchIndex(line)
		if m == nil {
			break
		}
		open, err := opening(line[:m[0]])
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(line[m[2]:m[3]])
		if err != nil || n > maxRepeat/max(1, m[0]-open) {
			return nil, fmt.Errorf("too large a repetition: %s", line[m[0]:m[1]])
		}
		line = line[:open] + strings.Repeat(line[open+1:m[0]], n) + line[m[1]:]
	}
	return hexBytes.ReplaceAllFunc([]byte(line), func(m []byte) []byte {
		b, err := hex.DecodeString(string(m[len("{0x") : len(m)-1]))
		if err != nil {
			panic(err) // the expression lets nothing else through
		}
		return b
	}), nil
}

// opening finds the brace that is not closed at the end of text.
func opening(text string) (int, error) {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case '}':
			depth++
		case '{':
			if depth == 0 {
				return i, nil
			}
			depth--
		}
	}
	return 0, fmt.Errorf("a repetition without its beginning: %.40q", text)
}

// printable returns what was received so that it fits in a line.
func printable(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			fmt.Fprintf(&out, "{0x%x}", b[:n])
		} else {
			out.Write(b[:n])
		}
		b = b[n:]
	}
	return out.String()
}
