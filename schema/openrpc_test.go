package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/jsonrpc"
	"github.com/ommer/ommer/schema/uncle"
)

var serverVariable = regexp.MustCompile(`\$\{(\w+)\}`) // JSON Template Language, as OpenRPC says

// The document is what the OpenRPC specification calls one.
func TestOpenRPCMetaSchema(t *testing.T) {
	plain, _ := readOpenRPC(t)
	f, err := os.Open("testdata/openrpc/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	meta, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	// The address stands for draft 7 of JSON Schema with its parts under other names,
	// of which one is used.
	const draft = "http://json-schema.org/draft-07/schema#"
	draft7 := map[string]any{
		"$schema": draft, "allOf": []any{map[string]any{"$ref": draft}},
		"definitions": map[string]any{"JSONSchemaObject": map[string]any{"properties": map[string]any{
			"$ref": map[string]any{"$ref": draft + "/properties/$ref"},
		}}},
	}
	for address, doc := range map[string]any{
		"https://meta.json-schema.tools": draft7, "https://meta.json-schema.tools/": draft7, "https://meta.open-rpc.org/": meta,
	} {
		if err := c.AddResource(address, doc); err != nil {
			t.Fatal(err)
		}
	}
	// A server's URL is called a uri there, and is a template by the specification.
	c.RegisterFormat(&jsonschema.Format{Name: "uri", Validate: func(v any) error {
		s, ok := v.(string)
		if !ok {
			return nil
		}
		u, err := url.Parse(serverVariable.ReplaceAllString(s, "x"))
		if err == nil && !u.IsAbs() {
			err = errors.New("not an absolute URL")
		}
		return err
	}})
	s, err := c.Compile("https://meta.open-rpc.org/")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(plain); err != nil {
		t.Error(err)
	}
}

// Every component is referred to, but for the errors: they are the list of all.
func TestOpenRPCComponentsAreUsed(t *testing.T) {
	plain, _ := readOpenRPC(t)
	for kind, components := range follow(t, plain, "#/components").(map[string]any) {
		for name := range components.(map[string]any) {
			ref := fmt.Sprintf(`{"$ref":"#/components/%s/%s"}`, kind, name)
			if kind != "errors" && !bytes.Contains(schema.OpenRPC(), []byte(ref)) {
				t.Errorf("nothing refers to the %s %s", kind, name)
			}
		}
	}
}

// The version of the document begins with that of the paths.
func TestOpenRPCVersion(t *testing.T) {
	_, doc := readOpenRPC(t)
	major, _, _ := strings.Cut(doc.Info.Version, ".")
	var got []string
	for _, s := range doc.Servers {
		got = append(got, s.URL)
		for _, m := range serverVariable.FindAllStringSubmatch(s.URL, -1) {
			if _, ok := s.Variables[m[1]]; !ok {
				t.Errorf("%s: there is no variable %s", s.URL, m[1])
			}
		}
	}
	want := []string{"https://${host}/v" + major + "/${apiKey}", "wss://${host}/ws/v" + major + "/${apiKey}"}
	if !slices.Equal(got, want) {
		t.Errorf("version %s, servers %q, want %q", doc.Info.Version, got, want)
	}
}

// The methods are those of the code, and take what ParseParams takes.
func TestOpenRPCMethods(t *testing.T) {
	_, doc := readOpenRPC(t)
	var names []string
	for _, m := range schema.Methods {
		names = append(names, m.String())
	}
	var got []string
	for _, m := range doc.Methods {
		got = append(got, m.Name)
	}
	if !slices.Equal(got, names) {
		t.Fatalf("methods %q, want %q", got, names)
	}
	want := map[schema.Method]struct {
		params   []string
		question schema.Question // of the good values below
	}{
		schema.UncleByNumber: {[]string{"block", "index"}, schema.Question{Block: schema.Number(7), Index: 1}},
		schema.UncleByHash:   {[]string{"blockHash", "index"}, schema.Question{Block: schema.BlockHash(schema.Hash(common.HexToHash(someHash))), Index: 1}},
	}
	good := map[string]string{"block": `"0x7"`, "blockHash": `"` + someHash + `"`, "index": `"0x1"`}
	for i, method := range schema.Methods {
		m := doc.Methods[i]
		var values []string
		for j, p := range m.Params {
			if p.Name != want[method].params[j] || !p.Required {
				t.Errorf("%v: parameter %d is %+v, want %s, required", method, j, p, want[method].params[j])
			}
			missing := fmt.Sprintf("missing value for required argument %d", j)
			if _, err := schema.ParseParams(method, params(values)); err == nil || err.Message != missing {
				t.Errorf("%v: without %s: %v, want %s", method, p.Name, err, missing)
			}
			values = append(values, good[p.Name])
		}
		if q, err := schema.ParseParams(method, params(values)); err != nil || q != want[method].question {
			t.Errorf("%v: %s asks %v, %v; want %v", method, params(values), q, err, want[method].question)
		}
		tooMany := fmt.Sprintf("too many arguments, want at most %d", len(m.Params))
		if _, err := schema.ParseParams(method, params(append(values, "1"))); err == nil || err.Message != tooMany {
			t.Errorf("%v: with one more: %v, want %s", method, err, tooMany)
		}
		if m.ParamStructure != "by-position" || m.Result.Schema.Title != "UncleOrNull" {
			t.Errorf("%v: params %s, result %s", method, m.ParamStructure, m.Result.Schema.Title)
		}
		codes := map[int]bool{} // OpenRPC, section "Method Object": "The Errors MUST have unique error codes"
		for _, e := range m.Errors {
			if codes[e.Code] {
				t.Errorf("%v: two errors with the code %d", method, e.Code)
			}
			codes[e.Code] = true
		}
		for code := range schema.Codes {
			if reply := (&schema.Error{Code: schema.Code(code)}).Reply(); !codes[reply.Code] {
				t.Errorf("%v: no error with the code %d", method, reply.Code)
			}
		}
	}
}

func params(values []string) []byte { return []byte("[" + strings.Join(values, ",") + "]") }

// Examples can be asked, and are what the schemas say.
func TestOpenRPCExamples(t *testing.T) {
	plain, doc := readOpenRPC(t)
	for i, m := range doc.Methods {
		schemas, result := schemasOf(t, plain, i)
		nulls := 0
		for _, e := range m.Examples {
			t.Run(m.Name+"/"+e.Name, func(t *testing.T) {
				var values []string
				for j, p := range e.Params {
					if p.Name != m.Params[j].Name {
						t.Errorf("parameter %d is called %s, want %s", j, p.Name, m.Params[j].Name)
					}
					if err := validate(t, schemas[j], p.Value); err != nil {
						t.Error(err)
					}
					values = append(values, string(p.Value))
				}
				if _, err := schema.ParseParams(schema.Methods[i], params(values)); err != nil {
					t.Errorf("%s: %v", params(values), err)
				}
				if err := validate(t, result, e.Result.Value); err != nil {
					t.Error(err)
				}
				if string(e.Result.Value) == "null" {
					nulls++
					return
				}
				var h types.Header
				if err := json.Unmarshal(e.Result.Value, &h); err != nil {
					t.Fatal(err)
				}
				// Rendered from its header, hash included, it is what it was.
				if got := uncle.Append(nil, &h); string(got) != string(e.Result.Value) {
					t.Errorf("the example is\n%s\nwhich would be sent as\n%s", e.Result.Value, got)
				}
			})
		}
		if nulls == 0 || nulls == len(m.Examples) {
			t.Errorf("%s: %d of %d examples are null, want some", m.Name, nulls, len(m.Examples))
		}
	}
	mainnet := doc.Methods[0].Examples[0]
	if !bytes.Contains(mainnet.Result.Value, []byte(`"hash":"0x932bdf904546a2287a2c9b2ede37925f698a7657484b172d4e5184f80bdd464d"`)) {
		t.Errorf("%s is not the uncle 0 of mainnet's block 0x29c: %s", mainnet.Name, mainnet.Result.Value)
	}
}

// The members of the block object are those that package uncle writes.
func TestOpenRPCUncle(t *testing.T) {
	plain, doc := readOpenRPC(t)
	object := follow(t, plain, "#/components/schemas/Uncle").(map[string]any)
	var required []string
	for _, name := range object["required"].([]any) {
		required = append(required, name.(string))
	}
	all := slices.Sorted(maps.Keys(object["properties"].(map[string]any)))

	var before, after map[string]json.RawMessage // London
	for example, members := range map[*openRPCExample]*map[string]json.RawMessage{
		&doc.Methods[0].Examples[0].Result: &before, &doc.Methods[1].Examples[0].Result: &after,
	} {
		if err := json.Unmarshal(example.Value, members); err != nil {
			t.Fatal(err)
		}
	}
	if want := slices.Sorted(maps.Keys(before)); !slices.Equal(required, want) {
		t.Errorf("required are %q, want %q", required, want)
	}
	if want := slices.Sorted(maps.Keys(after)); !slices.Equal(all, want) {
		t.Errorf("properties are %q, want %q", all, want)
	}

	s := schemaAt(t, plain, "/components/schemas/Uncle")
	for name := range after {
		for _, bad := range []string{`"0x"`, `"0X1"`, `"0x00g"`, `1`, `{}`, `["0x1"]`} {
			changed := maps.Clone(after)
			changed[name] = json.RawMessage(bad)
			if name == "extraData" && bad == `"0x"` {
				continue
			}
			text, err := json.Marshal(changed)
			if err != nil {
				t.Fatal(err)
			}
			if validate(t, s, text) == nil {
				t.Errorf("%s may be %s", name, bad)
			}
		}
	}
}

// FuzzOpenRPCParams holds the schemas of parameters against ParseParams: a value is
// valid exactly when it is accepted.
func FuzzOpenRPCParams(f *testing.F) {
	plain, doc := readOpenRPC(f)
	good := map[string]string{"block": `"latest"`, "blockHash": `"` + someHash + `"`, "index": `"0x0"`}
	for _, value := range []string{
		`"0x0"`, `"0X1f"`, `"0x00"`, `"0x"`, `""`, `"0x7fffffffffffffff"`, `"0x8000000000000000"`, `"0xffffffffffffffff"`,
		`"0x10000000000000000"`, `"latest"`, `"earliest"`, `"pending"`, `"safe"`, `"finalized"`, `"Latest"`, `"3"`, `3`, `null`,
		`true`, `{}`, `["0x1"]`, `"` + someHash + `"`, `"` + strings.ToUpper(someHash) + `"`, `"0x123"`, `"0xg"`, `"0x1\n"`, `"0x1 "`,
	} {
		f.Add([]byte(value))
	}
	schemas := make([][]*jsonschema.Schema, len(schema.Methods))
	for i := range schema.Methods {
		schemas[i], _ = schemasOf(f, plain, i)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		// An escape never stands for what is accepted, though a validator that has
		// resolved it cannot see that. Beyond that both read JSON, and only that.
		calls, _, err := jsonrpc.Parse(slices.Concat([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":[`), value, []byte("]}")), nil, jsonrpc.Limits{})
		if err != nil || !json.Valid(value) || bytes.ContainsRune(value, '\\') || calls[0].Err != nil {
			return
		}
		for i, method := range schema.Methods {
			for j, p := range doc.Methods[i].Params {
				var values []string
				for _, other := range doc.Methods[i].Params {
					values = append(values, good[other.Name])
				}
				values[j] = string(value)
				_, refused := schema.ParseParams(method, params(values))
				if invalid := validate(t, schemas[i][j], value); (invalid == nil) != (refused == nil) {
					t.Errorf("%v, %s: %s is refused with %v, and by the schema with %v", method, p.Name, value, refused, invalid)
				}
			}
		}
	})
}
