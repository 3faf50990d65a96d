package bus

import (
	"encoding/json"
	"testing"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// FuzzPlain: whatever comes is answered with valid JSON, or silently dropped; and a
// question that is understood is understood the same when it is written anew.
func FuzzPlain(f *testing.F) {
	const name = "eth_getUncleByBlockNumberAndIndex"
	for _, s := range []string{
		`["0x29c","0x0"]`, ` ["latest","0x1"]`, `[]`, `[[]]`, `{}`, `{"jsonrpc":"2.0","id":1,"method":"` + name + `","params":["0x1","0x0"]}`,
		`{"jsonrpc":"2.0","method":"` + name + `"}`, `{"jsonrpc":"2.0","id":"\ud800","method":"x"}`, `["0x1"`, `{"id":{}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		if !isPlain(msg) {
			return
		}
		var p plainLookup
		q, wrong, ask := p.parse(name, msg)
		if wrong != nil {
			if ask {
				t.Fatal("wrong, and asked")
			}
			if out := jsonrpc.AppendError(nil, p.id, wrong); !json.Valid(out) {
				t.Fatalf("invalid response %q", out)
			}
			return
		}
		if !ask {
			return
		}
		if out := jsonrpc.AppendResult(nil, p.id, schema.Null); !json.Valid(out) {
			t.Fatalf("invalid response %q", out)
		}
		again, wrong, _ := new(plainLookup).parse(name, schema.AppendParams(nil, q))
		if wrong != nil || again != q {
			t.Errorf("%v became %v, %v", q, again, wrong)
		}
	})
}
