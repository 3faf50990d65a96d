package jsonrpc_test

import (
	"encoding/json"
	"testing"

	"github.com/ommer/ommer/schema/jsonrpc"
)

func TestAppendResult(t *testing.T) {
	tests := []struct{ name, id, result, want string }{
		{"number", `1`, `null`, `{"jsonrpc":"2.0","id":1,"result":null}`},
		{"string", `"a"`, `{"x":[]}`, `{"jsonrpc":"2.0","id":"a","result":{"x":[]}}`},
		{"no id", ``, `null`, `{"jsonrpc":"2.0","id":null,"result":null}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var id []byte
			if tt.id != "" {
				id = []byte(tt.id)
			}
			if got := string(jsonrpc.AppendResult([]byte("x"), id, []byte(tt.result))); got != "x"+tt.want {
				t.Errorf("got %s, want x%s", got, tt.want)
			}
		})
	}
}

func TestAppendError(t *testing.T) {
	tests := []struct {
		name string
		id   string
		err  *jsonrpc.Error
		want string
	}{
		{
			"no id", "", &jsonrpc.Error{Code: jsonrpc.CodeParse, Message: "parse error"},
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
		},
		{
			"data", "7", &jsonrpc.Error{Code: -32005, Message: "limit exceeded", Data: []byte(`{"a":1}`)},
			`{"jsonrpc":"2.0","id":7,"error":{"code":-32005,"message":"limit exceeded","data":{"a":1}}}`,
		},
		{
			"method not found", "7", jsonrpc.MethodNotFound([]byte(`a"<b>`)),
			`{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"the method a\"\u003cb\u003e does not exist/is not available"}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var id []byte
			if tt.id != "" {
				id = []byte(tt.id)
			}
			if got := string(jsonrpc.AppendError([]byte("x"), id, tt.err)); got != "x"+tt.want {
				t.Errorf("got  %s\nwant x%s", got, tt.want)
			}
		})
	}
}

// FuzzAppendError holds messages to what encoding/json makes of them.
func FuzzAppendError(f *testing.F) {
	for _, s := range []string{"", "parse error", "\x00\b\f\n\r\t\x1f\x7f\"\\/", "<a href='&'>", "é😀\u2028\u2029\u202a", "\xff\xed\xa0\x80a\xe2\x82", "a\ufffdb"} {
		f.Add(-32600, s)
	}
	f.Fuzz(func(t *testing.T, code int, message string) {
		want, err := json.Marshal(struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}{code, message})
		if err != nil {
			t.Fatal(err)
		}
		got := jsonrpc.AppendError(nil, nil, &jsonrpc.Error{Code: code, Message: message})
		if string(got) != `{"jsonrpc":"2.0","id":null,"error":`+string(want)+`}` {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
