package schema_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/jsonrpc"
)

const someHash = "0xb8a651cb280e169015aef5235a141cb2d905058d1ff9bba788b7ad2c729c9837"

// showParams writes what ParseParams returned so that a table can hold it.
func showParams(q schema.Question, err *jsonrpc.Error) string {
	if err != nil {
		if err.Code != jsonrpc.CodeInvalidParams {
			return fmt.Sprintf("code %d: %s", err.Code, err.Message)
		}
		return err.Message
	}
	return fmt.Sprintf("%v/%d", q.Block, q.Index)
}

func TestParseParamsByNumber(t *testing.T) {
	const noPrefix0 = "invalid argument 0: hex string without 0x prefix"
	tests := []struct{ name, raw, want string }{
		{"number", `["0x29c","0x1"]`, "0x29c/1"},
		{"zeros", `["0x0","0x0"]`, "0x0/0"},
		{"white space", " [ \"0x3\"\t,\n\"0x0\" ] ", "0x3/0"},
		{"upper case", `["0X1D","0XA"]`, "0x1d/10"},
		{"largest number", `["0x7fffffffffffffff","0xffffffffffffffff"]`, "0x7fffffffffffffff/18446744073709551615"},
		{"latest", `["latest","0x0"]`, "latest/0"},
		{"earliest", `["earliest","0x0"]`, "earliest/0"},
		{"pending", `["pending","0x0"]`, "pending/0"},
		{"safe", `["safe","0x0"]`, "safe/0"},
		{"finalized", `["finalized","0x0"]`, "finalized/0"},

		{"tag in the wrong case", `["Latest","0x0"]`, noPrefix0},
		{"tag escaped", `["l\u0061test","0x0"]`, noPrefix0},
		{"unknown tag", `["foo","0x0"]`, noPrefix0},
		{"decimal string", `["3","0x0"]`, noPrefix0},
		{"spaces inside", `[" 0x3 ","0x0"]`, noPrefix0},
		{"negative", `["-0x1","0x0"]`, noPrefix0},
		{"number value", `[3,"0x0"]`, noPrefix0},
		{"bool", `[true,"0x0"]`, noPrefix0},
		{"object", `[{"blockNumber":"0x3"},"0x0"]`, noPrefix0},
		{"array", `[["0x3"],"0x0"]`, noPrefix0},
		{"empty string", `["","0x0"]`, "invalid argument 0: empty hex string"},
		{"no digits", `["0x","0x0"]`, `invalid argument 0: hex string "0x"`},
		{"leading zero", `["0x03","0x0"]`, "invalid argument 0: hex number with leading zero digits"},
		{"two zeros", `["0x00","0x0"]`, "invalid argument 0: hex number with leading zero digits"},
		{"2^63", `["0x8000000000000000","0x0"]`, "invalid argument 0: block number larger than int64"},
		{"over 64 bits", `["0x10000000000000000","0x0"]`, "invalid argument 0: hex number > 64 bits"},
		{"hash", `["` + someHash + `","0x0"]`, "invalid argument 0: hex number > 64 bits"},
		{"bad digit", `["0xg","0x0"]`, "invalid argument 0: invalid hex string"},
		{"bad digit before the 17th", `["0x1111111111111111g1","0x0"]`, "invalid argument 0: invalid hex string"},
		{"bad digit after the 17th", `["0x11111111111111111g","0x0"]`, "invalid argument 0: hex number > 64 bits"},
		{"quote inside", `["0x\"","0x0"]`, "invalid argument 0: invalid hex string"},

		{"index leading zero", `["0x3","0x00"]`, "invalid argument 1: hex number with leading zero digits"},
		{"index without prefix", `["0x3","1"]`, "invalid argument 1: hex string without 0x prefix"},
		{"index a tag", `["0x3","latest"]`, "invalid argument 1: hex string without 0x prefix"},
		{"index negative", `["0x3","-0x1"]`, "invalid argument 1: hex string without 0x prefix"},
		{"index a number", `["0x3",0]`, "invalid argument 1: non-string"},
		{"index a bool", `["0x3",false]`, "invalid argument 1: non-string"},
		{"index an object", `["0x3",{}]`, "invalid argument 1: non-string"},
		{"index empty", `["0x3",""]`, "invalid argument 1: empty hex string"},
		{"index without digits", `["0x3","0x"]`, `invalid argument 1: hex string "0x"`},
		{"index with a bad digit", `["0x3","0xG"]`, "invalid argument 1: invalid hex string"},
		{"index over 64 bits", `["0x3","0x10000000000000000"]`, "invalid argument 1: hex number > 64 bits"},
		{"index of 17 bad digits", `["0x3","0xggggggggggggggggg"]`, "invalid argument 1: hex number > 64 bits"},
		{"index of 16 bad digits", `["0x3","0xgggggggggggggggg"]`, "invalid argument 1: invalid hex string"},

		{"params absent", ``, "missing value for required argument 0"},
		{"params null", `null`, "missing value for required argument 0"},
		{"no values", `[]`, "missing value for required argument 0"},
		{"null block", `[null,"0x0"]`, "missing value for required argument 0"},
		{"no index", `["0x3"]`, "missing value for required argument 1"},
		{"null index", `["0x3", null ]`, "missing value for required argument 1"},
		{"null index and a third", `["0x3",null,1]`, "missing value for required argument 1"},
		{"three values", `["0x3","0x0","0x1"]`, "too many arguments, want at most 2"},
		{"third is null", `["0x3","0x0" , null]`, "too many arguments, want at most 2"},
		{"bad block before three values", `["foo","0x0","0x1"]`, noPrefix0},
		{"bad block before bad index", `["foo","bar"]`, noPrefix0},
		{"bad index before three values", `["0x3","bar","x"]`, "invalid argument 1: hex string without 0x prefix"},
		{"object params", `{"blockNumber":"0x3","index":"0x0"}`, "non-array args"},
		{"string params", `"0x3"`, "non-array args"},
		{"number params", `1`, "non-array args"},
		{"bool params", `true`, "non-array args"},
	}
	geth := newGeth(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			geth.check(t, schema.UncleByNumber, tt.raw)
			var raw []byte
			if tt.raw != "" {
				raw = []byte(tt.raw)
			}
			if got := showParams(schema.ParseParams(schema.UncleByNumber, raw)); got != tt.want {
				t.Errorf("ParseParams(%s)\ngot  %s\nwant %s", tt.raw, got, tt.want)
			}
		})
	}
}

func TestParseParamsByHash(t *testing.T) {
	digits := strings.TrimPrefix(someHash, "0x")
	tests := []struct{ name, raw, want string }{
		{"hash", `["` + someHash + `","0x1"]`, someHash + "/1"},
		{"upper case", `["0X` + strings.ToUpper(digits) + `","0x0"]`, someHash + "/0"},
		{"too short", `["0x` + digits[2:] + `","0x0"]`, "invalid argument 0: hex string has length 62, want 64 for common.Hash"},
		{"too long", `["0x` + digits + `00","0x0"]`, "invalid argument 0: hex string has length 66, want 64 for common.Hash"},
		{"empty", `["","0x0"]`, "invalid argument 0: hex string has length 0, want 64 for common.Hash"},
		{"no digits", `["0x","0x0"]`, "invalid argument 0: hex string has length 0, want 64 for common.Hash"},
		{"odd length", `["0x3","0x0"]`, "invalid argument 0: hex string of odd length"},
		{"no prefix", `["` + digits + `","0x0"]`, "invalid argument 0: hex string without 0x prefix"},
		{"tag", `["latest","0x0"]`, "invalid argument 0: hex string without 0x prefix"},
		{"bad digit", `["0xzz` + digits[2:] + `","0x0"]`, "invalid argument 0: invalid hex string"},
		{"number", `[3,"0x0"]`, "invalid argument 0: non-string"},
		{"object", `[{"blockHash":"` + someHash + `"},"0x0"]`, "invalid argument 0: non-string"},
		{"array", `[["` + someHash + `"],"0x0"]`, "invalid argument 0: non-string"},
		{"null", `[null,"0x0"]`, "missing value for required argument 0"},
		{"no index", `["` + someHash + `"]`, "missing value for required argument 1"},
		{"index leading zero", `["` + someHash + `","0x00"]`, "invalid argument 1: hex number with leading zero digits"},
		{"three values", `["` + someHash + `","0x0",[]]`, "too many arguments, want at most 2"},
	}
	geth := newGeth(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			geth.check(t, schema.UncleByHash, tt.raw)
			if got := showParams(schema.ParseParams(schema.UncleByHash, []byte(tt.raw))); got != tt.want {
				t.Errorf("ParseParams(%s)\ngot  %s\nwant %s", tt.raw, got, tt.want)
			}
		})
	}
}

// FuzzParseParams holds the rules to go-ethereum's own server, and what is accepted
// to a round trip. The input is tried as the whole of the parameters and as each
// of them.
func FuzzParseParams(f *testing.F) {
	for _, s := range []string{
		``, `null`, `[]`, `{}`, `1`, `[ "0x3" , "0x0" ]`, `["0x3","0x0",1]`, `["latest",""]`, `["` + someHash + `","0x1"]`,
		`0x0`, `0X7fffffffffffffff`, `0xffffffffffffffff`, `0x8000000000000000`, `0x1111111111111111g1`, `0x11111111111111111g`,
		`0xgggggggggggggggggg`, `0x\u0033`, `0x\"`, `0x_1`, `0x01`, `safe`, someHash, `[true,{"a":[1,"]"]}]`,
		`["",""]`, `["0x3","",1]`, "[\r\n\"0x3\"\r,\t\"0x0\"\r\n]",
	} {
		f.Add(true, s)
		f.Add(false, s)
	}
	geth := newGeth(f)
	f.Fuzz(func(t *testing.T, byHash bool, in string) {
		m := schema.UncleByNumber
		if byHash {
			m = schema.UncleByHash
		}
		for _, raw := range []string{in, `["` + in + `","0x0"]`, `["0x3","` + in + `"]`, `["` + someHash + `","` + in + `"]`} {
			if raw == "" || json.Valid([]byte(raw)) {
				geth.check(t, m, raw)
			}
		}
	})
}

// TestParamBytes has every byte as a digit, and every pair as what begins a value.
func TestParamBytes(t *testing.T) {
	geth := newGeth(t)
	check := func(format string, text []byte) {
		for _, m := range schema.Methods {
			if raw := fmt.Sprintf(format, text); json.Valid([]byte(raw)) {
				geth.check(t, m, raw)
			}
		}
	}
	for c := range 256 {
		digit := []byte{byte(c)}
		check(`["0x%s","0x0"]`, digit)
		check(`["0x1","0x%s"]`, digit)
		check(`["0x1%s","0x0"]`, digit)
		check(`["%s","0x0"]`, append([]byte(someHash[:65]), digit...))
		check(`["0x1","0x0"%s]`, digit)
		check(`["0%s1","0x0"]`, digit)
	}
}

// geth is go-ethereum's server with the methods' signatures, which answer with what
// they were asked.
type geth struct{ server *rpc.Server }

type gethMethods struct{}

func (gethMethods) GetUncleByBlockNumberAndIndex(block rpc.BlockNumber, index hexutil.Uint) string {
	return fmt.Sprintf("%v/%d", block, uint64(index))
}

func (gethMethods) GetUncleByBlockHashAndIndex(block common.Hash, index hexutil.Uint) string {
	return fmt.Sprintf("%v/%d", block, uint64(index))
}

func newGeth(t testing.TB) *geth {
	g := &geth{rpc.NewServer()}
	t.Cleanup(g.server.Stop)
	if err := g.server.RegisterName("eth", gethMethods{}); err != nil {
		t.Fatal(err)
	}
	return g
}

// typeNames are what go-ethereum's messages have and ours leave out.
var typeNames = regexp.MustCompile(`json: cannot unmarshal (.*) into Go value of type .*`)

// ask returns go-ethereum's answer, an error as showParams writes it.
func (g *geth) ask(t testing.TB, m schema.Method, raw string) string {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%v","params":%s}`, m, raw)
	if raw == "" {
		body = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%v"}`, m)
	}
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.server.ServeHTTP(w, request)
	var answer struct {
		Result string
		Error  *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("geth answers %s: %q", body, w.Body)
	}
	switch e := answer.Error; {
	case e == nil:
		return answer.Result
	case e.Code != jsonrpc.CodeInvalidParams:
		return fmt.Sprintf("code %d: %s", e.Code, e.Message)
	default:
		return typeNames.ReplaceAllString(e.Message, "$1")
	}
}

// ours departs from go-ethereum in one thing: it reads an index that is the empty
// string as 0, by accident.
func ours(raw, answer string) string {
	var args []json.RawMessage
	if json.Unmarshal([]byte(raw), &args) == nil && len(args) > 1 && string(args[1]) == `""` && !strings.Contains(answer, "argument 0") {
		return "invalid argument 1: " + hexutil.ErrEmptyString.Error()
	}
	return answer
}

func (g *geth) check(t *testing.T, m schema.Method, raw string) {
	t.Helper()
	q, err := schema.ParseParams(m, []byte(raw))
	got, want := showParams(q, err), ours(raw, g.ask(t, m, raw))
	if got != want {
		t.Fatalf("%v %q\ngot  %s\nwant %s", m, raw, got, want)
	}
	if err != nil {
		return
	}
	if q.Method() != m {
		t.Errorf("%q: method is %v, want %v", raw, q.Method(), m)
	}
	again, err := schema.ParseParams(m, schema.AppendParams(nil, q))
	if err != nil || again != q {
		t.Errorf("%q: became %v, %v", raw, again, err)
	}
}

func TestParseNoParams(t *testing.T) {
	const tooMany, nonArray = "too many arguments, want at most 0", "non-array args"
	for _, tt := range []struct{ raw, want string }{
		{"", ""}, {"null", ""}, {"[]", ""}, {" [ \n] ", ""},
		{"[1]", tooMany}, {"[null]", tooMany}, {" [ \t\"\",2]", tooMany},
		{"{}", nonArray}, {`"x"`, nonArray}, {"1", nonArray}, {"false", nonArray},
	} {
		got := ""
		if err := schema.ParseNoParams([]byte(tt.raw)); err != nil {
			got = err.Message
		}
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.raw, got, tt.want)
		}
	}
}

// Parameters that are no JSON never come this far; should they, nothing breaks.
func TestParseParamsTruncated(t *testing.T) {
	whole := `["0x3\\","0x0", "0x0"]`
	for i := range whole {
		_, _ = schema.ParseParams(schema.UncleByNumber, []byte(whole[:i]))
		_, _ = schema.ParseParams(schema.UncleByHash, []byte(whole[:i]))
		_ = schema.ParseNoParams([]byte(whole[:i]))
	}
}

func TestAppendParams(t *testing.T) {
	tests := []struct {
		name string
		q    schema.Question
		want string
	}{
		{"number", schema.Question{Block: schema.Number(0x29c), Index: 10}, `x["0x29c","0xa"]`},
		{"tag", schema.Question{Block: schema.Tagged(schema.Finalized)}, `x["finalized","0x0"]`},
		{"hash", schema.Question{Block: schema.BlockHash(schema.Hash{31: 0xab}), Index: 1}, `x["0x` + strings.Repeat("0", 62) + `ab","0x1"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(schema.AppendParams([]byte("x"), tt.q)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestParamsAllocations(t *testing.T) {
	number, tag, hash := []byte(`["0x29c","0x0"]`), []byte(`["latest","0x0"]`), []byte(`["`+someHash+`","0x0"]`)
	buf := make([]byte, 0, 128)
	got := testing.AllocsPerRun(100, func() {
		_, _ = schema.ParseParams(schema.UncleByNumber, number)
		_, _ = schema.ParseParams(schema.UncleByNumber, tag)
		q, _ := schema.ParseParams(schema.UncleByHash, hash)
		buf = schema.AppendParams(buf[:0], q)
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}

func BenchmarkParseParams(b *testing.B) {
	for _, bb := range []struct {
		name string
		m    schema.Method
		raw  string
	}{
		{"number", schema.UncleByNumber, `["0x29c","0x0"]`},
		{"hash", schema.UncleByHash, `["` + someHash + `","0x0"]`},
		{"error", schema.UncleByNumber, `["3","0x0"]`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			raw := []byte(bb.raw)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = schema.ParseParams(bb.m, raw)
			}
		})
	}
}
