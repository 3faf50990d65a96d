package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ommer/ommer/schema"
)

// openRPC is what these tests read of the document, its references resolved.
type openRPC struct {
	Info    struct{ Version string }
	Servers []struct {
		URL       string
		Variables map[string]struct{ Default string }
	}
	Methods []openRPCMethod
}

type openRPCMethod struct {
	Name           string
	ParamStructure string
	Params         []openRPCValue
	Result         openRPCValue
	Errors         []struct{ Code int }
	Examples       []struct {
		Name   string
		Params []openRPCExample
		Result openRPCExample
	}
}

type openRPCValue struct {
	Name     string
	Required bool
	Schema   struct{ Title string }
}

type openRPCExample struct {
	Name  string
	Value json.RawMessage
}

// readOpenRPC decodes the document twice: as it is, and with its references
// resolved.
func readOpenRPC(tb testing.TB) (plain any, doc openRPC) {
	tb.Helper()
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.OpenRPC()))
	if err != nil {
		tb.Fatal(err)
	}
	whole, err := json.Marshal(resolve(tb, plain, plain))
	if err == nil {
		err = json.Unmarshal(whole, &doc)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return plain, doc
}

// resolve replaces the references in v, each to a part of root.
func resolve(tb testing.TB, root, v any) any {
	tb.Helper()
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			return resolve(tb, root, follow(tb, root, ref))
		}
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = resolve(tb, root, member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = resolve(tb, root, v[i])
		}
		return out
	default:
		return v
	}
}

// follow returns what a reference refers to.
func follow(tb testing.TB, root any, ref string) any {
	tb.Helper()
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		tb.Fatalf("%s refers to another document", ref)
	}
	for name := range strings.SplitSeq(path, "/") {
		if root, ok = root.(map[string]any)[name]; !ok {
			tb.Fatalf("%s refers to nothing", ref)
		}
	}
	return root
}

// schemaAt compiles the JSON Schema at a place of the document.
func schemaAt(tb testing.TB, plain any, pointer string) *jsonschema.Schema {
	tb.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7) // OpenRPC, section "Schema Object"
	if err := c.AddResource("openrpc.json", plain); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile("openrpc.json#" + pointer)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// schemasOf compiles the schemas of a method's parameters and of its result.
func schemasOf(tb testing.TB, plain any, i int) (params []*jsonschema.Schema, result *jsonschema.Schema) {
	tb.Helper()
	m := follow(tb, plain, "#/methods").([]any)[i].(map[string]any)
	compile := func(v any, place string) *jsonschema.Schema {
		if ref, ok := v.(map[string]any)["$ref"].(string); ok {
			place = strings.TrimPrefix(ref, "#")
		}
		return schemaAt(tb, plain, place+"/schema")
	}
	for j, p := range m["params"].([]any) {
		params = append(params, compile(p, fmt.Sprintf("/methods/%d/params/%d", i, j)))
	}
	return params, compile(m["result"], fmt.Sprintf("/methods/%d/result", i))
}

// validate validates a JSON text.
func validate(tb testing.TB, s *jsonschema.Schema, text []byte) error {
	tb.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
	return s.Validate(v)
}
