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
// examples. It is written by hand and held against the code by tests. It follows
// OpenRPC 1.3.2, which old tools and new ones accept; 1.4 has nothing more that it
// would use.
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

var packedOpenRPC = sync.OnceValue(func() Packed { return Pack(OpenRPC()) })

// OpenRPC returns the OpenRPC document, without white space. It is shared and must
// not be changed.
func OpenRPC() []byte { return compactOpenRPC() }

// PackedOpenRPC returns the same, packed.
func PackedOpenRPC() Packed { return packedOpenRPC() }
