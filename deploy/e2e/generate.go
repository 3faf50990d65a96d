//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes requests that are odd or wrong in a way, among some that are
// right. Equal seeds give equal requests.
type generator struct {
	r       *rand.Rand
	hashes  []string // of blocks that there are
	numbers uint64   // of blocks, and some beyond them
}

func newGenerator(seed uint64, hashes []string, numbers uint64) *generator {
	return &generator{r: rand.New(rand.NewPCG(seed, seed)), hashes: hashes, numbers: numbers}
}

// one in n times it is true.
func (g *generator) one(n int) bool { return g.r.IntN(n) == 0 }

func (g *generator) pick(from ...string) string { return from[g.r.IntN(len(from))] }

// message writes a message.
func (g *generator) message() string {
	var text string
	switch n := g.r.IntN(100); {
	case n < 70:
		text = g.request()
	case n < 90:
		text = g.batch()
	case n < 96:
		text = g.value(4)
	case n < 97:
		text = g.nested()
	default:
		text = g.pick("", " ", "\n\t ", "[", "]", "{", "}", "{]", "nul", "tru", `"`, "'a'", "\ufeff", "\xff", "\x00", "[,]", "[1,]", `{"a"}`, "01", "1.", "+1", "NaN", "//")
	}
	text = g.space() + text + g.space()
	if g.one(8) {
		text = g.damage(text)
	}
	return text
}

// batch writes an array of requests and of what is none.
func (g *generator) batch() string {
	n := g.r.IntN(6)
	if g.one(60) {
		n = 998 + g.r.IntN(5) // the limit is 1000
	}
	members := make([]string, n)
	for i := range members {
		switch {
		case n > 6:
			members[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x0","0x0"]}`, i)
		case g.one(6):
			members[i] = g.value(3)
		default:
			members[i] = g.request()
		}
	}
	return "[" + g.space() + strings.Join(members, g.space()+","+g.space()) + g.space() + "]"
}

// request writes a request object. Each part of it is as it should be more often than
// not, so that the others come to be looked at.
func (g *generator) request() string {
	method := g.method()
	members := []string{g.named("jsonrpc", g.version()), g.named("method", method), g.named("params", g.params(method))}
	if !g.one(12) {
		members = append(members, g.named("id", g.id()))
	}
	if g.one(12) { // leave one out
		i := g.r.IntN(len(members))
		members = append(members[:i], members[i+1:]...)
	}
	for g.one(10) { // one more
		members = append(members, g.named(
			g.pick("jsonrpc", "id", "method", "params", "result", "error", "Method", "ID", "", "extra", "méthode", `\u0000`),
			g.pick(g.version(), g.method(), g.params(method), g.id(), g.value(2))))
	}
	if g.one(25) { // a response
		members = []string{g.named("jsonrpc", `"2.0"`), g.named("id", g.id()), g.named(g.pick("result", "error"), g.value(2))}
	}
	g.r.Shuffle(len(members), func(i, k int) { members[i], members[k] = members[k], members[i] })
	return "{" + g.space() + strings.Join(members, g.space()+","+g.space()) + g.space() + "}"
}

// named writes a member. Now and then a letter of its name is an escape.
func (g *generator) named(name, value string) string {
	if g.one(40) && name != "" && name[0] != '\\' {
		name = fmt.Sprintf(`\u%04x`, name[0]) + name[1:]
	}
	return `"` + name + `"` + g.space() + ":" + g.space() + value
}

func (g *generator) space() string {
	if !g.one(12) {
		return ""
	}
	return g.pick(" ", "\n", "\t", "\r", " \r\n\t ", "  ")
}

func (g *generator) version() string {
	if !g.one(15) {
		return `"2.0"`
	}
	return g.pick(`"1.0"`, `2.0`, `2`, `"2"`, `"2.00"`, `"\u0032.0"`, `" 2.0"`, `""`, `null`, `true`, `[]`, `{"2.0":"2.0"}`)
}

func (g *generator) method() string {
	switch n := g.r.IntN(40); {
	case n < 17:
		return `"eth_getUncleByBlockNumberAndIndex"`
	case n < 34:
		return `"eth_getUncleByBlockHashAndIndex"`
	case n < 36:
		return `"` + g.pick(gethMethods...) + `"`
	default:
		return g.pick(`""`, `"eth_"`, `"_"`, `"eth_getUncle"`, `"eth_getunclebyblocknumberandindex"`, `"ETH_getUncleByBlockHashAndIndex"`,
			`" eth_getUncleByBlockHashAndIndex"`, `"eth_getUncleByBlockHashAndIndex\u0000"`, `"eth\u005fgetUncleByBlockNumberAndIndex"`, `"foo"`, `"eth_subscribe"`,
			`"eth_unsubscribe"`, `"eth_subscription"`, `"\ud800"`, `"\ud83d\ude00"`, `"é<>&\u2028"`, `"\"\\\/\b\f\n\r\t"`, `1`, `null`, `true`, `[]`, `{}`,
			`"`+strings.Repeat("x", 2047+g.r.IntN(3))+`"`)
	}
}

func (g *generator) id() string {
	if !g.one(5) {
		return fmt.Sprint(g.r.IntN(1000))
	}
	return g.pick(`0`, `-1`, `-0`, `1.5`, `1e3`, `1E+400`, `123456789012345678901234567890`, `"a"`, `""`, `"\u0041"`, `"\ud800"`, `"é"`, `" "`, `"\\"`, `"<&>"`,
		`null`, `true`, `false`, `{}`, `[]`, `[1]`, `{"a":1}`, `"`+strings.Repeat("i", 300)+`"`)
}

// params writes the parameters of a call.
func (g *generator) params(method string) string {
	if g.one(15) {
		return g.value(3)
	}
	block := g.block
	if strings.Contains(method, "Hash") != g.one(12) {
		block = g.hash
	}
	list := []string{block(), g.index()}
	if g.one(12) {
		list = list[:g.r.IntN(2)]
	}
	for g.one(12) {
		list = append(list, g.pick(g.value(2), g.index(), "null"))
	}
	return "[" + g.space() + strings.Join(list, g.space()+","+g.space()) + g.space() + "]"
}

func (g *generator) block() string {
	switch n := g.r.IntN(20); {
	case n < 8:
		return fmt.Sprintf(`"%#x"`, g.r.Uint64N(g.numbers))
	case n < 12:
		return g.pick(`"latest"`, `"earliest"`, `"pending"`, `"safe"`, `"finalized"`)
	case n < 15:
		return g.pick(`"Latest"`, `"LATEST"`, `" latest"`, `"latest "`, `"\u006catest"`, `"lates"`, `"latestt"`, `"accepted"`, `"head"`, `latest`)
	case n < 18:
		return g.quantity()
	default:
		return g.value(2)
	}
}

func (g *generator) index() string {
	switch n := g.r.IntN(20); {
	case n < 11:
		return g.pick(`"0x0"`, `"0x1"`, `"0x2"`)
	case n < 18:
		return g.quantity()
	default:
		return g.value(2)
	}
}

// quantity writes a number, most often not as it is to be written.
func (g *generator) quantity() string {
	if g.one(2) {
		return g.pick(`"0x"`, `"0X"`, `""`, `"0"`, `"1"`, `"x1"`, `"0x00"`, `"0x01"`, `"0X0"`, `"0X1"`, `"0xg"`, `"0x1g"`, `"0x 1"`, `" 0x1"`, `"0x1 "`, `"-0x1"`, `"+0x1"`, `"0x-1"`,
			`"0x+1"`, `"0x1_0"`, `"0x1.0"`, `"0xé"`, `"0x\u0031"`, `"\u0030x1"`, `"0x1\n"`, `"0x7fffffffffffffff"`, `"0x8000000000000000"`, `"0xffffffffffffffff"`, `"0xFFFFFFFFFFFFFFFF"`,
			`"0x10000000000000000"`, `"0x1000000000000000g"`, `"0xg0000000000000000"`, `"0x00000000000000000"`, `"0x0ffffffffffffffff"`, `"0xffffffff"`, `"0x100000000"`)
	}
	digits := make([]byte, g.r.IntN(20))
	for i := range digits {
		digits[i] = "0123456789abcdefABCDEF"[g.r.IntN(22)]
	}
	return `"` + g.pick("0x", "0x", "0x", "0X", "") + string(digits) + `"`
}

// hash writes the hash of a block, or what is like it.
func (g *generator) hash() string {
	h := g.hashes[g.r.IntN(len(g.hashes))]
	switch n := g.r.IntN(20); {
	case n < 8:
		return `"` + h + `"`
	case n < 10:
		return `"` + g.pick("0x", "0X") + strings.ToUpper(h[2:]) + `"`
	case n < 12: // a digit is another
		return `"` + h[:len(h)-1] + g.pick("0", "f", "g", "G", " ", "é", `\"`, `\u0030`, "") + `"`
	case n < 14:
		return `"` + h[:2+g.r.IntN(65)] + `"`
	case n < 16:
		return `"` + h + h[2:2+g.r.IntN(5)] + `"`
	case n < 18:
		return g.pick(`"`+h[2:]+`"`, `"`+h[1:]+`"`, `" `+h+`"`, `"`+h+` "`, `""`, `"0x"`, `"0x1"`, `"latest"`, `"0x`+strings.Repeat("0", 64)+`"`, h)
	default:
		return g.value(2)
	}
}

// value writes any JSON value.
func (g *generator) value(deepest int) string {
	n := g.r.IntN(12)
	if deepest == 0 {
		n %= 9
	}
	switch n {
	case 9, 10:
		list := make([]string, g.r.IntN(4))
		for i := range list {
			list[i] = g.value(deepest - 1)
		}
		return "[" + strings.Join(list, ",") + "]"
	case 11:
		list := make([]string, g.r.IntN(4))
		for i := range list {
			list[i] = g.named(g.pick("", "a", "jsonrpc", "id", "method", "blockHash", "blockNumber", "requireCanonical"), g.value(deepest-1))
		}
		return "{" + strings.Join(list, ",") + "}"
	default:
		return g.pick("null", "true", "false", "0", "3", "-1", "1.0", "1e3", "0.5", "1e999", "18446744073709551616", `""`, `"0x0"`, `"0x1"`, `"latest"`, `"2.0"`, `"\u0000"`, `"\ud83d\ude00"`)
	}
}

// nested writes one thing in another: about as deep as we read, or as deep as
// encoding/json does.
func (g *generator) nested() string {
	n := g.r.IntN(300)
	if g.one(20) {
		n = 9_990 + g.r.IntN(20)
	}
	if g.one(2) {
		return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)
	}
	return strings.Repeat("[", n) + "1" + strings.Repeat("]", n)
}

// damage changes a text somewhere.
func (g *generator) damage(text string) string {
	at := g.r.IntN(len(text) + 1)
	junk := g.pick(" ", ",", ":", `"`, `\`, "{", "}", "[", "]", "0", "-", ".", "e", "x", "\x00", "\x1f", "\x7f", "\xff", "\xc3", "\xed\xa0\x80", "é", "\u2028", `\u12`, `\x`, "//", "/**/", "null")
	switch g.r.IntN(6) {
	case 0: // cut off
		return text[:at]
	case 1: // something in between
		return text[:at] + junk + text[at:]
	case 2: // something in place of a byte
		return text[:at] + junk + text[min(at+1, len(text)):]
	case 3: // a byte less
		return text[:at] + text[min(at+1, len(text)):]
	case 4: // something behind
		return text + junk
	default: // something before
		return junk + text
	}
}
