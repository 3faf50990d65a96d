package jsonrpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ommer/ommer/schema/jsonrpc"
)

// show writes what Parse returned so that a table can hold it: one line per call,
// fields that are nil as "-".
func show(calls []jsonrpc.Call, batch bool, err *jsonrpc.Error) string {
	if err != nil {
		return fmt.Sprintf("error %d %s", err.Code, err.Message)
	}
	raw := func(b []byte) string {
		if b == nil {
			return "-"
		}
		return string(b)
	}
	var lines []string
	if batch {
		lines = append(lines, "batch")
	}
	for _, c := range calls {
		switch {
		case c.Err != nil:
			lines = append(lines, fmt.Sprintf("%s: error %d %s", raw(c.ID), c.Err.Code, c.Err.Message))
		case c.Notification():
			lines = append(lines, fmt.Sprintf("notification %s %s", c.Method, raw(c.Params)))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s %s", raw(c.ID), c.Method, raw(c.Params)))
		}
	}
	if lines == nil {
		return "nothing"
	}
	return strings.Join(lines, "\n")
}

func TestParse(t *testing.T) {
	const (
		parseError = "error -32700 parse error"
		noID       = "-: error -32600 invalid request"
		withID     = "1: error -32600 invalid request"
	)
	tests := []struct{ name, msg, want string }{
		{"call", `{"jsonrpc":"2.0","id":1,"method":"m","params":["0x1","0x0"]}`, `1: m ["0x1","0x0"]`},
		{"members in any order", `{"params":[],"method":"m","id":1,"jsonrpc":"2.0"}`, `1: m []`},
		{"white space", " \t\r\n{ \"jsonrpc\" : \"2.0\" ,\n\"id\" : 1 , \"method\" : \"m\" , \"params\" : [ 1 ] } \n", `1: m [ 1 ]`},
		{"no params", `{"jsonrpc":"2.0","id":1,"method":"m"}`, `1: m -`},
		{"null params", `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, `1: m null`},
		{"object params", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[{}]}}`, `1: m {"a":[{}]}`},
		{"string params are not the envelope's matter", `{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}`, `1: m "x"`},
		{"unknown members", `{"jsonrpc":"2.0","id":1,"method":"m","x":{"id":2},"":[null,true,false,-0.5e+1]}`, `1: m -`},

		{"id 0", `{"jsonrpc":"2.0","id":0,"method":"m"}`, `0: m -`},
		{"id -0", `{"jsonrpc":"2.0","id":-0,"method":"m"}`, `-0: m -`},
		{"id 1.5", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, `1.5: m -`},
		{"id 1e3", `{"jsonrpc":"2.0","id":1e3,"method":"m"}`, `1e3: m -`},
		{"id of 30 digits", `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}`, `123456789012345678901234567890: m -`},
		{"id string", `{"jsonrpc":"2.0","id":"a b","method":"m"}`, `"a b": m -`},
		{"id empty string", `{"jsonrpc":"2.0","id":"","method":"m"}`, `"": m -`},
		{"id keeps its escapes", `{"jsonrpc":"2.0","id":"\u0041\"\/","method":"m"}`, `"\u0041\"\/": m -`},
		{"id with U+FFFD as it is", "{\"jsonrpc\":\"2.0\",\"id\":\"\ufffd\",\"method\":\"m\"}", "\"\ufffd\": m -"},
		{"id beyond ASCII", `{"jsonrpc":"2.0","id":"é😀","method":"m"}`, `"é😀": m -`},
		{"id null is no notification", `{"jsonrpc":"2.0","id":null,"method":"m"}`, `null: m -`},
		{"id true", `{"jsonrpc":"2.0","id":true,"method":"m"}`, noID},
		{"id false", `{"jsonrpc":"2.0","id":false,"method":"m"}`, noID},
		{"id object", `{"jsonrpc":"2.0","id":{"a":1},"method":"m"}`, noID},
		{"id array", `{"jsonrpc":"2.0","id":[1],"method":"m"}`, noID},
		{"notification", `{"jsonrpc":"2.0","method":"m","params":[]}`, `notification m []`},

		{"version missing", `{"id":1,"method":"m"}`, withID},
		{"version 1.0", `{"jsonrpc":"1.0","id":1,"method":"m"}`, withID},
		{"version a number", `{"jsonrpc":2.0,"id":1,"method":"m"}`, withID},
		{"version null, no id", `{"jsonrpc":null,"method":"m"}`, noID},
		{"version escaped", `{"jsonrpc":"2\u002e0","id":1,"method":"m"}`, `1: m -`},
		{"version escaped throughout", `{"jsonrpc":"\u0032\u002E\u0030","id":1,"method":"m"}`, `1: m -`},
		{"version with a tail", `{"jsonrpc":"2.0\u0000","id":1,"method":"m"}`, withID},
		{"version long", `{"jsonrpc":"2.0` + strings.Repeat("0", 100) + `","id":1,"method":"m"}`, withID},

		{"method missing", `{"jsonrpc":"2.0","id":1}`, withID},
		{"method empty", `{"jsonrpc":"2.0","id":1,"method":""}`, withID},
		{"method a number", `{"jsonrpc":"2.0","id":1,"method":7}`, withID},
		{"method null", `{"jsonrpc":"2.0","id":1,"method":null}`, withID},
		{"method an array", `{"jsonrpc":"2.0","id":1,"method":["m"]}`, withID},
		{"method escaped", `{"jsonrpc":"2.0","id":1,"method":"\u0065th\/\n\ud83d\ude00"}`, "1: eth/\n😀 -"},
		{"method with half a surrogate pair", `{"jsonrpc":"2.0","id":1,"method":"a\ud83dx\ude00\ud83d\u0041"}`, "1: a\ufffdx\ufffd\ufffdA -"},
		{
			"method of 2048 bytes", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", 2048) + `"}`,
			"1: " + strings.Repeat("m", 2048) + " -",
		},
		{
			"method of 2049 bytes", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", 2049) + `"}`,
			"1: error -32600 method name too long: 2049 > 2048",
		},
		{
			"method length counts without escapes", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat(`\u006d`, 2048) + `"}`,
			"1: " + strings.Repeat("m", 2048) + " -",
		},
		{
			"notification with a long method", `{"jsonrpc":"2.0","method":"` + strings.Repeat("m", 2049) + `"}`,
			"notification " + strings.Repeat("m", 2049) + " -",
		},

		{"last id wins", `{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, `2: m -`},
		{"last method wins", `{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`, `1: b -`},
		{"last method wins when bad", `{"jsonrpc":"2.0","id":1,"method":"a","method":null}`, withID},
		{"last version wins", `{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"method":"m"}`, `1: m -`},
		{"last params win", `{"jsonrpc":"2.0","id":1,"method":"m","params":[1],"params":[2]}`, `1: m [2]`},
		{"last id wins when bad", `{"jsonrpc":"2.0","id":1,"id":{},"method":"m"}`, noID},
		{"names match by case", `{"jsonrpc":"2.0","ID":1,"Method":"m"}`, noID},
		{"names may be escaped", `{"\u006asonrpc":"2.0","\u0069\u0064":1,"m\u0065thod":"m","\u0070\u0061\u0072\u0061\u006d\u0073":[]}`, `1: m []`},
		{"names may be escaped throughout", `{"` + escaped("jsonrpc") + `":"2.0","id":1,"` + escaped("method") + `":"m"}`, `1: m -`},
		{"an escaped backslash is no escape", `{"jsonrpc":"2.0","id":1,"method":"m","\\u0069d":2}`, `1: m -`},

		{"response", `{"jsonrpc":"2.0","id":1,"result":null}`, withID},
		{"error response", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`, withID},
		{"empty object", `{}`, noID},
		{"number", `1`, noID},
		{"string", `"x"`, noID},
		{"null", `null`, noID},
		{"true", ` true `, noID},

		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":1,"method":"b"}]`, "batch\n1: a -\n1: b -"},
		{"batch of one", " [ {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"} ] ", "batch\n1: a -"},
		{"batch with a notification", `[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":"z","method":"b"}]`, "batch\nnotification a -\n\"z\": b -"},
		{"batch of no objects", `[1,"a",null]`, "batch" + strings.Repeat("\n"+noID, 3)},
		{"batch of batches", `[[],[{}],[{"jsonrpc":"2.0","id":1,"method":"m"}]]`, "batch" + strings.Repeat("\n"+noID, 3)},
		{"batch with an invalid member", `[{"jsonrpc":"2.0","id":1,"method":"a"},{"foo":1},{"jsonrpc":"2.0","id":7}]`, "batch\n1: a -\n" + noID + "\n7: error -32600 invalid request"},
		{"empty batch", `[]`, "error -32600 empty batch"},
		{"empty batch with spaces", " [ \n ] ", "error -32600 empty batch"},
		{"batch at the limit", `[1,1,{"jsonrpc":"2.0","id":5,"method":"m"}]`, "batch\n" + noID + "\n" + noID + "\n5: m -"},
		{
			"batch over the limit", `[{"id":3},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":5,"method":"m"},{"jsonrpc":"2.0","id":6,"method":"m"}]`,
			"batch\n5: error -32600 batch too large",
		},
		{"batch over the limit, first id beyond it", `[1,2,3,4,{"jsonrpc":"2.0","id":5,"method":"m"}]`, "batch\n5: error -32600 batch too large"},
		{"batch over the limit without ids", `[1,2,3,4]`, "batch\n-: error -32600 batch too large"},
		{"batch over the limit that is no JSON", `[1,2,3,4,5`, parseError},

		{"nothing", "", "nothing"},
		{"white space only", " \t\r\n", "nothing"},
		{"broken", `{"jsonrpc":"2.0","id":1,"method":`, parseError},
		{"broken batch", `[{"jsonrpc":"2.0","id":1,"method":"a"},`, parseError},
		{"broken batch member", `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc"]`, parseError},
		{"unclosed batch", `[`, parseError},
		{"unclosed object", `{`, parseError},
		{"trailing bytes", `{"jsonrpc":"2.0","id":1,"method":"m"}x`, parseError},
		{"trailing bytes after a batch", `[1]]`, parseError},
		{"trailing bytes after an empty batch", `[]1`, parseError},
		{"two values", `{"jsonrpc":"2.0","id":1,"method":"m"} {}`, parseError},
		{"byte-order mark", "\ufeff{}", parseError},
		{"single quotes", `{'jsonrpc':'2.0'}`, parseError},
		{"trailing comma", `{"jsonrpc":"2.0","id":1,"method":"m",}`, parseError},
		{"comment", `{"jsonrpc":"2.0"/**/}`, parseError},
		{"name without quotes", `{id:1}`, parseError},
		{"missing colon", `{"id" 1}`, parseError},
		{"another byte for a colon", `{"id";1}`, parseError},
		{"another byte for a colon, deeper", `{"params":{"id";1}}`, parseError},
		{"missing value", `{"id":}`, parseError},
		{"vertical tab", "\v{}", parseError},
		{"control byte in a string", "{\"id\":\"\x1f\"}", parseError},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"m\"}", parseError},
		{"surrogate as UTF-8", "{\"id\":\"\xed\xa0\x80\"}", parseError},
		{"overlong UTF-8", "{\"id\":\"\xc0\xaf\"}", parseError},
		{"truncated UTF-8", "{\"id\":\"\xe2\x82\"}", parseError},
		{"unknown escape", `{"id":"\x"}`, parseError},
		{"short escape", `{"id":"\u12"}`, parseError},
		{"escape at the end", `{"id":"\`, parseError},
		{"number with a leading zero", `{"id":01}`, parseError},
		{"number ending in a dot", `{"id":1.}`, parseError},
		{"number without digits", `{"id":-}`, parseError},
		{"number with an empty exponent", `{"id":1e+}`, parseError},
		{"plus sign", `{"id":+1}`, parseError},
		{"NaN", `NaN`, parseError},
		{"half a literal", `nul`, parseError},
		{"another literal", `{"id":nulL}`, parseError},
		{"another literal as long as true", `[trux]`, parseError},
		{"another literal as long as false", `[falsy]`, parseError},
		{"eight deep", `[{"params":[[[[[[]]]]]]}]`, "batch\n" + noID},
		{"nine deep", `[{"params":[[[[[[[]]]]]]]}]`, parseError},
		{"nine deep in objects", `{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{}}}}}}}}}`, parseError},
	}
	limits := jsonrpc.Limits{Batch: 3, Depth: 8}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := show(jsonrpc.Parse([]byte(tt.msg), nil, limits))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Parse(%.200q) (-want +got):\n%s", tt.msg, diff)
			}
		})
	}
}

// escaped writes each letter as a \u escape.
func escaped(s string) string {
	var b strings.Builder
	for _, c := range s {
		fmt.Fprintf(&b, `\u%04X`, c)
	}
	return b.String()
}

// TestParseNumbers has every short string of what numbers are written with, as an id.
func TestParseNumbers(t *testing.T) {
	const alphabet = "019+-.eE"
	valid := 0
	var try func(number string)
	try = func(number string) {
		calls, _, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":`+number+`,"method":"m"}`), nil, jsonrpc.Limits{})
		switch want := json.Valid([]byte(number)); {
		case (err == nil) != want:
			t.Errorf("%s: error is %v, want valid %v", number, err, want)
		case want:
			valid++
			if string(calls[0].ID) != number {
				t.Errorf("%s: id is %s", number, calls[0].ID)
			}
		}
		if len(number) < 6 {
			for _, c := range alphabet {
				try(number + string(c))
			}
		}
	}
	try("")
	if valid < 1000 {
		t.Errorf("%d were valid, want many", valid)
	}
}

// TestParseEscapes has every byte behind a backslash, at each place of a \u escape
// and behind half a surrogate pair, in a method's name.
func TestParseEscapes(t *testing.T) {
	var texts []string
	for c := range 256 {
		s := string([]byte{byte(c)})
		texts = append(texts, `\`+s, `\`+s+`x`, `\\`+s)
		for _, digits := range []string{"0041", "d83d", "DE00", "fFfF"} {
			for at := range digits {
				texts = append(texts, `\u`+digits[:at]+s+digits[at+1:], `\ud83d\u`+digits[:at]+s+digits[at+1:])
			}
		}
		texts = append(texts, `\ud83d`+s, `\ud83d\`+s, `\ud83d\`+s+`de00`, `\ud83d`+s+`ude00`, `\ude00`+s)
	}
	valid := 0
	for _, text := range texts {
		msg := []byte(`{"jsonrpc":"2.0","id":1,"method":"` + text + `"}`)
		var want struct{ Method string }
		ok := json.Unmarshal(msg, &want) == nil && utf8.Valid(msg)
		calls, _, err := jsonrpc.Parse(msg, nil, jsonrpc.Limits{})
		if (err == nil) != ok {
			t.Errorf("%q: error is %v, want valid %v", text, err, ok)
			continue
		}
		if ok {
			valid++
			if string(calls[0].Method) != want.Method {
				t.Errorf("%q: method is %q, want %q", text, calls[0].Method, want.Method)
			}
		}
	}
	if valid < 100 {
		t.Errorf("%d were valid, want many", valid)
	}
}

// The least that can be set is not taken for a default.
func TestParseLeastLimits(t *testing.T) {
	for msg, want := range map[string]string{
		`[{"id":1},{"jsonrpc":"2.0","id":2,"method":"m"}]`: "batch\n2: error -32600 batch too large",
		`[1]`:     "batch\n-: error -32600 invalid request",
		`[[]]`:    "error -32700 parse error",
		`[{}]`:    "error -32700 parse error",
		`{}`:      "-: error -32600 invalid request",
		`{"":{}}`: "error -32700 parse error",
	} {
		l := jsonrpc.Limits{Batch: 1, Depth: 1}
		if strings.Contains(msg, "jsonrpc") {
			l.Depth = 2
		}
		if got := show(jsonrpc.Parse([]byte(msg), nil, l)); got != want {
			t.Errorf("%s: got %q, want %q", msg, got, want)
		}
	}
}

// What lies behind the message in the buffer is not read.
func TestParseEndsWithTheMessage(t *testing.T) {
	for _, whole := range []string{"null", "true", "false", `"\u0041\n\ud83d\ude00é"`, "-10.5e+12", `[{"id":"longer than eight"},1]`} {
		buf := []byte(whole + whole)
		for n := 1; n <= len(whole); n++ {
			_, _, err := jsonrpc.Parse(buf[:n], nil, jsonrpc.Limits{})
			if want := json.Valid(buf[:n]); (err == nil) != want {
				t.Errorf("%q of %q: error is %v, want valid %v", buf[:n], buf, err, want)
			}
		}
	}
}

// Strings are scanned eight bytes at a time, so each byte is tried at each place
// of a string long enough for that.
func TestParseStringBytes(t *testing.T) {
	for at := range 20 {
		for c := range 256 {
			msg := []byte(`"` + strings.Repeat("x", 20) + `"`)
			msg[1+at] = byte(c)
			_, _, err := jsonrpc.Parse(msg, nil, jsonrpc.Limits{})
			if want := json.Valid(msg) && utf8.Valid(msg); (err == nil) != want {
				t.Errorf("byte %#x at %d: error is %v, want valid %v", c, at, err, want)
			}
		}
	}
}

// The defaults are what SEMANTICS promises callers: 1000 members, and a depth that
// no real request comes near.
func TestParseDefaults(t *testing.T) {
	member := `{"jsonrpc":"2.0","id":1,"method":"m"}`
	batch := func(n int) string { return "[" + strings.Repeat(member+",", n-1) + member + "]" }
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

	calls, _, err := jsonrpc.Parse([]byte(batch(1000)), nil, jsonrpc.Limits{})
	if err != nil || len(calls) != 1000 || calls[999].Err != nil {
		t.Errorf("batch of 1000: %d calls, error %v", len(calls), err)
	}
	if got, want := show(jsonrpc.Parse([]byte(batch(1001)), nil, jsonrpc.Limits{})), "batch\n1: error -32600 batch too large"; got != want {
		t.Errorf("batch of 1001: got %q, want %q", got, want)
	}
	if _, _, err := jsonrpc.Parse([]byte(nested(128)), nil, jsonrpc.Limits{}); err != nil {
		t.Errorf("128 deep: %v", err)
	}
	if _, _, err := jsonrpc.Parse([]byte(nested(129)), nil, jsonrpc.Limits{}); err == nil {
		t.Error("129 deep: accepted")
	}
}

// A batch over the limit must not make the caller's slice grow beyond it.
func TestParseHoldsNoMoreThanTheLimit(t *testing.T) {
	msg := []byte("[" + strings.Repeat("1,", 5000) + "1]")
	calls, _, _ := jsonrpc.Parse(msg, make([]jsonrpc.Call, 0, 10), jsonrpc.Limits{Batch: 10})
	if got := cap(calls); got != 10 {
		t.Errorf("capacity is %d, want 10", got)
	}
}

// What an earlier message left in the slice must not show in the next.
func TestParseReuse(t *testing.T) {
	calls, _, _ := jsonrpc.Parse([]byte(`[{"jsonrpc":"2.0","id":1,"method":"a","params":[]},1]`), nil, jsonrpc.Limits{})
	got := show(jsonrpc.Parse([]byte(`[{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":2,"method":"c"}]`), calls, jsonrpc.Limits{}))
	if want := "batch\nnotification b -\n2: c -"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Appending to one field of a call must not write over the next in the message.
func TestParseCapsWhatItAliases(t *testing.T) {
	msg := []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`)
	before := string(msg)
	calls, _, _ := jsonrpc.Parse(msg, nil, jsonrpc.Limits{})
	_ = append(calls[0].ID, "xxx"...)
	_ = append(calls[0].Params, "xxx"...)
	_ = append(calls[0].Method, "xxx"...)
	if string(msg) != before {
		t.Errorf("message became %s", msg)
	}
}
