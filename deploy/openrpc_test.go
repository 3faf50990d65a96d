package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ommer/ommer/deploy/testchain"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/uncle"
	"github.com/ommer/ommer/workers/archive"
)

// The schema of an uncle takes every uncle that there is at hand, and the examples
// that name a block of Sepolia are what is in that block.
func TestOpenRPCDescribesUncles(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.OpenRPC()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	if err := c.AddResource("openrpc.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("openrpc.json#/components/schemas/Uncle")
	if err != nil {
		t.Fatal(err)
	}
	check := func(headers []*types.Header) (withBaseFee int) {
		for _, h := range headers {
			text := uncle.Append(nil, h)
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err == nil {
				err = s.Validate(v)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if h.BaseFee != nil {
				withBaseFee++
			}
		}
		return withBaseFee
	}

	sample, err := testchain.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	var headers []*types.Header
	for _, b := range sample {
		headers = append(headers, b.Uncles()...)
	}
	withBaseFee := check(headers)
	if withBaseFee == 0 || withBaseFee == len(headers) {
		t.Errorf("%d of %d uncles of the sample chain have a base fee, want some", withBaseFee, len(headers))
	}
	t.Logf("the sample chain: %d uncles, %d with a base fee", len(headers), withBaseFee)

	headers = nil
	answers := map[string]string{} // by params
	for b, err := range sepolia(t).Blocks() {
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range b.Uncles {
			answers[fmt.Sprintf(`["%v","0x%x"]`, b.Hash, i)] = string(uncle.Append(nil, h))
		}
		headers = append(headers, b.Uncles...)
	}
	check(headers)
	t.Logf("Sepolia: %d uncles", len(headers))

	var examples struct {
		Methods []struct {
			Examples []struct {
				Name   string
				Params []struct{ Value string }
				Result struct{ Value json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(schema.OpenRPC(), &examples); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, m := range examples.Methods {
		for _, e := range m.Examples {
			if e.Name != "sepolia" {
				continue
			}
			compared++
			asked := fmt.Sprintf(`["%s","%s"]`, e.Params[0].Value, e.Params[1].Value)
			if got, want := string(e.Result.Value), answers[asked]; got != want {
				t.Errorf("%s is said to be\n%s\nbut is\n%s", asked, got, want)
			}
		}
	}
	if compared == 0 {
		t.Error("there is no example from Sepolia")
	}
}

// sepolia opens the blocks of Sepolia that go-ethereum's module carries.
func sepolia(t *testing.T) *archive.Era1 {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ethereum/go-ethereum").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	e, err := archive.Open(filepath.Join(strings.TrimSpace(string(dir)), "core/rawdb/eradb/testdata/sepolia-00021-b8814b14.era1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}
