package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ommer/ommer/schema/jsonrpc"
)

// FuzzParse holds Parse to encoding/json: the same verdict on what is JSON, and
// the same members of every request. The differences that it allows are those
// that the package's doc names.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		``, ` `, `[]`, `{}`, `null`, `[1,"a",{}]`, `{"a":1}x`, "\ufeff{}", `{"id":1,"id":2}`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x29c","0x0"]}`,
		`[{"jsonrpc":"2.0","id":"\u0041","method":"a"},{"jsonrpc":"2.0","method":"b"}]`,
		`{"\u006asonrpc":"2\u002e0","i\u0064":null,"method":"\ud83d\ude00\ud83d\n\/","params":{"a":[true,false,null]}}`,
		"{\"id\":\"\xff\"}", `{"id":-0.5e+10,"x":"\\\"\b\f\t"}`, `{"id":01}`, `[[[[[[[[[[]]]]]]]]]]`, `{"Method":"m","ID":1}`,
		`{"jsonrpc":"1.0","jsonrpc":"2.0","method":"m","method":2,"id":{}}`, `[1,1,1,1,1,{"jsonrpc":"2.0","id":9,"method":"m"}]`, `[1,1`, `[1,1]1`, `[]1`, `[1;1]`, `{"id":1]`,
	} {
		f.Add([]byte(s))
	}
	limits := jsonrpc.Limits{Batch: 4, Depth: 8}
	f.Fuzz(func(t *testing.T, msg []byte) {
		before := bytes.Clone(msg)
		calls, batch, err := jsonrpc.Parse(msg, nil, limits)
		if !bytes.Equal(msg, before) {
			t.Fatalf("message changed to %q", msg)
		}

		members, wantBatch, valid := reference(msg, limits.Depth)
		switch {
		case len(bytes.Trim(msg, " \t\r\n")) == 0:
			if len(calls) != 0 || batch || err != nil {
				t.Fatalf("white space: %s", show(calls, batch, err))
			}
			return
		case !valid:
			if err == nil || err.Code != jsonrpc.CodeParse || len(calls) != 0 || batch {
				t.Fatalf("not valid, but: %s", show(calls, batch, err))
			}
			return
		case wantBatch && len(members) == 0:
			if err == nil || err.Message != "empty batch" || len(calls) != 0 || batch {
				t.Fatalf("empty batch: %s", show(calls, batch, err))
			}
			return
		case err != nil:
			t.Fatalf("valid, but: %v", err)
		case batch != wantBatch:
			t.Fatalf("batch is %v", batch)
		}

		want := make([]jsonrpc.Call, len(members))
		for i, m := range members {
			want[i] = referenceCall(m)
		}
		if len(want) > limits.Batch {
			tooLarge := jsonrpc.Call{Err: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "batch too large"}}
			for _, c := range want {
				if c.ID != nil && c.Err == nil {
					tooLarge.ID = c.ID
					break
				}
			}
			want = []jsonrpc.Call{tooLarge}
		}
		if got, want := show(calls, batch, nil), show(want, batch, nil); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		for _, c := range calls {
			checkResponses(t, c)
		}
	})
}

// reference takes msg apart with encoding/json. It is not valid when
// encoding/json says so, or for the reasons that are ours alone.
func reference(msg []byte, depth int) (members []json.RawMessage, batch, valid bool) {
	if !json.Valid(msg) || !utf8.Valid(msg) || nesting(msg) > depth {
		return nil, false, false
	}
	if err := json.Unmarshal(msg, &members); err == nil && bytes.TrimSpace(msg)[0] == '[' {
		return members, true, true
	}
	return []json.RawMessage{bytes.TrimSpace(msg)}, false, true
}

// referenceCall is what a member is, told by encoding/json. A map keeps the last
// of duplicate names and folds no case.
func referenceCall(raw json.RawMessage) jsonrpc.Call {
	invalid := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request"}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		return jsonrpc.Call{Err: invalid}
	}
	var c jsonrpc.Call
	if id := m["id"]; id != nil {
		if strings.ContainsRune("{[tf", rune(id[0])) {
			return jsonrpc.Call{Err: invalid}
		}
		c.ID = id
	}
	text := func(raw json.RawMessage) (s string) {
		if err := json.Unmarshal(raw, &s); err != nil {
			return ""
		}
		return s
	}
	method := text(m["method"])
	if text(m["jsonrpc"]) != "2.0" || method == "" {
		return jsonrpc.Call{ID: c.ID, Err: invalid}
	}
	c.Method, c.Params = []byte(method), m["params"]
	return c
}

// nesting returns how many arrays and objects valid JSON has inside each other.
func nesting(msg []byte) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(msg); i++ {
		switch c := msg[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// checkResponses reads back the responses to c.
func checkResponses(t *testing.T, c jsonrpc.Call) {
	t.Helper()
	wantID := "null"
	if c.ID != nil {
		wantID = string(c.ID)
	}
	failure := c.Err
	if failure == nil {
		failure = jsonrpc.MethodNotFound(c.Method)
	}
	for _, b := range [][]byte{jsonrpc.AppendResult(nil, c.ID, []byte(`{"a":[]}`)), jsonrpc.AppendError(nil, c.ID, failure)} {
		var r struct {
			JSONRPC string
			ID      json.RawMessage
			Result  json.RawMessage
			Error   *struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatalf("response %s: %v", b, err)
		}
		if r.JSONRPC != "2.0" || !sameID(r.ID, wantID) {
			t.Errorf("response %s: id is %q, want %q", b, r.ID, wantID)
		}
		if r.Error == nil && string(r.Result) != `{"a":[]}` {
			t.Errorf("response %s: result is %s", b, r.Result)
		}
		if r.Error != nil && (r.Error.Code != failure.Code || r.Error.Message != failure.Message) {
			t.Errorf("response %s: error is %+v, want %+v", b, *r.Error, *failure)
		}
	}
}

// sameID compares a decoded id, which is empty for null in a struct field that
// was left alone, with the bytes that were sent.
func sameID(got json.RawMessage, want string) bool {
	return string(got) == want || len(got) == 0 && want == "null"
}
