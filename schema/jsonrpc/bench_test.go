package jsonrpc_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ommer/ommer/schema/jsonrpc"
)

const byHash = `{"jsonrpc":"2.0","id":42,"method":"eth_getUncleByBlockHashAndIndex",` +
	`"params":["0xb8a651cb280e169015aef5235a141cb2d905058d1ff9bba788b7ad2c729c9837","0x0"]}`

func batchOf(n int) []byte {
	return []byte("[" + strings.Repeat(byHash+",", n-1) + byHash + "]")
}

// hostile are messages of n bytes that make careless parsers slow.
func hostile(n int) map[string][]byte {
	fill := func(head, body, tail string) []byte {
		return []byte(head + strings.Repeat(body, (n-len(head)-len(tail))/len(body)) + tail)
	}
	return map[string][]byte{
		"brackets":        fill("", "[", ""),
		"numbers":         fill("[", "1,", "1]"),
		"empty objects":   fill("[", "{},", "{}]"),
		"nested in depth": fill("[", strings.Repeat("[", 100)+strings.Repeat("]", 100)+",", "1]"),
		"long string":     fill(`{"id":"`, "x", `"}`),
		"escapes":         fill(`{"jsonrpc":"2.0","id":1,"method":"`, `\u0041`, `"}`),
		"escaped quotes":  fill(`{"id":"`, `\"`, `"}`),
		"beyond ASCII":    fill(`{"id":"`, "é", `"}`),
		"same member":     fill(`{`, `"method":"\u0041",`, `"id":1}`),
		"escaped names":   fill(`{`, `"\u0069\u0064":1,`, `"id":1}`),
		"white space":     fill("", " ", "1"),
		"digits":          fill("", "1", ""),
		"garbage":         fill("", "\xff\x00{]", ""),
		"unclosed string": fill(`{"`, `\\`, ""),
	}
}

func TestParseAllocations(t *testing.T) {
	tests := []struct {
		name string
		msg  []byte
	}{
		{"call", []byte(byHash)},
		{"notification", []byte(`{"jsonrpc":"2.0","method":"m"}`)},
		{"escaped names and version", []byte(`{"\u006asonrpc":"2\u002e0","i\u0064":1,"method":"m"}`)},
		{"batch", batchOf(100)},
		{"batch too large", batchOf(2000)},
		{"invalid request", []byte(`{}`)},
		{"parse error", []byte(`{"jsonrpc`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			calls := make([]jsonrpc.Call, 0, jsonrpc.DefaultBatch)
			got := testing.AllocsPerRun(100, func() {
				calls, _, _ = jsonrpc.Parse(tt.msg, calls, jsonrpc.Limits{})
			})
			if got != 0 {
				t.Errorf("%v allocations, want 0", got)
			}
		})
	}
}

func TestAppendAllocations(t *testing.T) {
	id, result := []byte("42"), []byte(`{"a":1}`)
	failure := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: `invalid argument 0: hex string "0x"`}
	buf := make([]byte, 0, 512)
	got := testing.AllocsPerRun(100, func() {
		buf = jsonrpc.AppendResult(buf[:0], id, result)
		buf = jsonrpc.AppendError(buf, id, failure)
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}

// Whatever is sent, a megabyte takes milliseconds. A quadratic path would take
// minutes, so the bound can be far above what is measured.
func TestParseIsLinear(t *testing.T) {
	for name, msg := range hostile(1 << 20) {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, _, _ = jsonrpc.Parse(msg, nil, jsonrpc.Limits{})
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, bb := range []struct {
		name string
		msg  []byte
	}{
		{"call", []byte(byHash)},
		{"batch of 100", batchOf(100)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			calls := make([]jsonrpc.Call, 0, 100)
			b.SetBytes(int64(len(bb.msg)))
			b.ReportAllocs()
			for b.Loop() {
				calls, _, _ = jsonrpc.Parse(bb.msg, calls, jsonrpc.Limits{})
			}
		})
	}
}

func BenchmarkParseHostile(b *testing.B) {
	for name, msg := range hostile(1 << 20) {
		b.Run(name, func(b *testing.B) {
			calls := make([]jsonrpc.Call, 0, jsonrpc.DefaultBatch)
			b.SetBytes(int64(len(msg)))
			b.ReportAllocs()
			for b.Loop() {
				calls, _, _ = jsonrpc.Parse(msg, calls, jsonrpc.Limits{})
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	id := []byte(strconv.Itoa(42))
	result := []byte(`{"hash":"0x` + string(bytes.Repeat([]byte("ab"), 700)) + `"}`)
	failure := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid argument 0: hex string without 0x prefix"}
	buf := make([]byte, 0, 2048)
	b.Run("result", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = jsonrpc.AppendResult(buf[:0], id, result)
		}
	})
	b.Run("error", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = jsonrpc.AppendError(buf[:0], id, failure)
		}
	})
}
