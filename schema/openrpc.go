package schema

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"sync"
)

// Discover is the method whose result is the OpenRPC document. The name is that
// of the OpenRPC specification, section "Service Discovery Method". It is no
// Method: nobody is asked, and the document does not list it, since the
// specification describes it and generators make a bad identifier of the name.
const Discover = "rpc.discover"

// openRPC describes the methods, their parameters, results and errors, with real
// examples. It is written by hand and held against the code by tests. Its version
// of OpenRPC is the last one that tools of before 1.4 accept; the two differ in
// nothing that the document uses.
//
//go:embed openrpc.json
var openRPC []byte

var compactOpenRPC = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, openRPC); err != nil {
		panic("schema: openrpc.json: " + err.Error()) // it is compiled in, and tests read it
	}
	return bytes.Clone(b.Bytes())
})

// OpenRPC returns the OpenRPC document, without white space. It is shared and must
// not be changed.
func OpenRPC() []byte { return compactOpenRPC() }
