//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestOpenRPC reads the document from an edge without a key, and asks what its
// examples ask. Those from another network are left out.
func TestOpenRPC(t *testing.T) {
	f, key := startFleet(t, startNode(t, "").url, size{edges: 1, workers: 1})
	https := f.httpCaller(f.edges[0], true, key)
	address := strings.TrimSuffix(https.url, "/v3/"+key) + "/openrpc.json"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := https.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	document, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", address, resp.Status, err)
	}
	var doc struct {
		Methods []struct {
			Name     string
			Examples []struct {
				Name   string
				Params []struct{ Value json.RawMessage }
				Result struct{ Value json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]caller{"HTTPS": https, "WSS": f.mustWS(f.edges[0], true, key)} {
		raw, err := c.call(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}`))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := result(raw, 1); err != nil || !bytes.Equal(r, document) {
			t.Errorf("%s: rpc.discover is not the document: %v %.100s", name, err, r)
		}
		uncles, nulls := 0, 0
		for _, m := range doc.Methods {
			for _, e := range m.Examples {
				if e.Name == "mainnet" {
					continue
				}
				var params []string
				for _, p := range e.Params {
					params = append(params, string(p.Value))
				}
				raw, err := c.call(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":[%s]}`, m.Name, strings.Join(params, ",")))
				if err != nil {
					t.Fatal(err)
				}
				r, err := result(raw, 1)
				if err != nil || !bytes.Equal(r, e.Result.Value) {
					t.Errorf("%s, example %s: %v\ngot  %s\nwant %s", name, e.Name, err, r, e.Result.Value)
				}
				if string(r) == "null" {
					nulls++
				} else {
					uncles++
				}
			}
		}
		if uncles == 0 || nulls == 0 {
			t.Errorf("%s: asked for %d uncles and %d nulls, want some of each", name, uncles, nulls)
		}
		t.Logf("%s: %d examples with an uncle, %d with null", name, uncles, nulls)
	}
}
