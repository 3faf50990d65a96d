package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testChain = sync.OnceValue(func() upstreamtest.Chain { return upstreamtest.Generate(49, 49, "main") })

// soon is time enough for a node that answers, on a busy machine too.
const soon = time.Minute

// shortly is for nodes that do not answer. A quarter of it has to do for each call
// that the same node does answer.
const shortly = 4 * time.Second

// check checks nodes and makes sure of what holds for every report.
func check(t *testing.T, timeout time.Duration, urls ...string) []Report {
	t.Helper()
	reports, err := Run(t.Context(), Config{URLs: urls, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := Print(&table, reports, false); err != nil {
		t.Fatal(err)
	}
	object, err := json.MarshalIndent(Document{Version: "test", Nodes: reports}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{table.String(), string(object)} {
		if strings.Contains(text, upstreamtest.Secret) {
			t.Errorf("the URL's secret is shown:\n%s", text)
		}
	}
	for line := range strings.Lines(table.String()) {
		line = strings.TrimSuffix(line, "\n")
		if n := len([]rune(line)); n > lineWidth || line != printable(line) {
			t.Errorf("%d characters, want at most %d that can be printed: %q", n, lineWidth, line)
		}
	}
	validate(t, object)
	if t.Failed() || testing.Verbose() {
		t.Logf("\n%s", &table)
	}
	return reports
}

// validate holds what programs are given against its schema.
func validate(t *testing.T, object []byte) {
	t.Helper()
	text, err := os.ReadFile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("report.schema.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%v\n%s", err, object)
	}
}

// call is one of a request.
type call struct {
	ID     json.RawMessage
	Method string
	Params []any
}

func (c call) result(text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, c.ID, text)
}

func (c call) refused(code int, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, c.ID, code, strconv.Quote(message))
}

// intercept answers requests in the place of a node. answer gets the calls, one unless
// they are a batch, and returns "" to leave them to the node.
func intercept(n *upstreamtest.Node, answer func(calls []call, batch bool) string) {
	n.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		calls := make([]call, 1)
		batch := bytes.HasPrefix(body, []byte("["))
		if batch {
			err = json.Unmarshal(body, &calls)
		} else {
			err = json.Unmarshal(body, &calls[0])
		}
		if err == nil {
			if text := answer(calls, batch); text != "" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, text)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		node.ServeHTTP(w, r)
	})
}

// results answers single calls of these methods.
func results(n *upstreamtest.Node, of map[string]string) {
	intercept(n, func(calls []call, _ bool) string {
		if text, ok := of[calls[0].Method]; ok {
			return calls[0].result(text)
		}
		return ""
	})
}

// below says whether a call names a block below a number, by its number or hash.
func below(number uint64, name string) bool {
	for at, b := range testChain()[:number] {
		if at > 0 && (name == fmt.Sprintf("%#x", at) || name == b.Hash().Hex()) {
			return true
		}
	}
	return false
}
