package schema_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ommer/ommer/schema"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The bytes of version 1 must never change: edges and workers of different
// releases share a bus.
func TestRequestGolden(t *testing.T) {
	hash := schema.Hash{0: 0xaa, 31: 0xbb}
	const id = 0x0102030405060708
	tests := []struct {
		name  string
		req   schema.Request
		frame string
	}{
		{
			"number",
			schema.Request{ID: id, Budget: 2 * time.Second, Question: schema.Question{Block: schema.Number(0x29c), Index: 1}},
			"01 0102030405060708 000007d0 01 0000000000000001 000000000000029c",
		},
		{
			"hash",
			schema.Request{ID: id, Budget: time.Millisecond, Question: schema.Question{Block: schema.BlockHash(hash), Index: math.MaxUint64}},
			"01 0102030405060708 00000001 02 ffffffffffffffff aa" + strings.Repeat("00", 30) + "bb",
		},
		{
			"latest",
			schema.Request{ID: id, Question: schema.Question{Block: schema.Tagged(schema.Latest)}},
			"01 0102030405060708 00000000 03 0000000000000000 01",
		},
		{
			"may be packed",
			schema.Request{ID: id, Budget: 2 * time.Second, Question: schema.Question{Block: schema.Number(0x29c), Index: 1, Packed: true}},
			"01 0102030405060708 800007d0 01 0000000000000001 000000000000029c",
		},
		{"earliest", schema.Request{Question: schema.Question{Block: schema.Tagged(schema.Earliest)}}, "01 0000000000000000 00000000 03 0000000000000000 02"},
		{"pending", schema.Request{Question: schema.Question{Block: schema.Tagged(schema.Pending)}}, "01 0000000000000000 00000000 03 0000000000000000 03"},
		{"safe", schema.Request{Question: schema.Question{Block: schema.Tagged(schema.Safe)}}, "01 0000000000000000 00000000 03 0000000000000000 04"},
		{"finalized", schema.Request{Question: schema.Question{Block: schema.Tagged(schema.Finalized)}}, "01 0000000000000000 00000000 03 0000000000000000 05"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			frame := unhex(t, tt.frame)
			if got := schema.AppendRequest([]byte("x"), tt.req); !bytes.Equal(got, append([]byte("x"), frame...)) {
				t.Errorf("written: %x, want 78%x", got, frame)
			}
			if got, err := schema.ParseRequest(frame); err != nil || got != tt.req {
				t.Errorf("read: %+v, %v, want %+v", got, err, tt.req)
			}
			if len(frame) > schema.MaxRequestFrame {
				t.Errorf("%d bytes, over MaxRequestFrame", len(frame))
			}
		})
	}
}

// See TestRequestGolden: neither may these bytes.
func TestReplyGolden(t *testing.T) {
	failure := func(c schema.Code, detail string) schema.Answer {
		return schema.Answer{Err: &schema.Error{Code: c, Detail: detail}}
	}
	const id = 0x0102030405060708
	tests := []struct {
		name   string
		answer schema.Answer
		frame  string
	}{
		{"result", schema.Answer{Result: []byte("null")}, "01 0102030405060708 00 6e756c6c"},
		{
			"packed result",
			schema.Answer{Packed: schema.Packed{Deflate: []byte{0xab, 0xcd}, Size: 0x582, CRC: 0x01020304}},
			"01 0102030405060708 80 00000582 01020304 abcd",
		},
		{"internal", failure(schema.Internal, "no"), "01 0102030405060708 01 6e6f"},
		{"timeout", failure(schema.Timeout, ""), "01 0102030405060708 02"},
		{"overloaded", failure(schema.Overloaded, ""), "01 0102030405060708 03"},
		{"pruned", failure(schema.Pruned, ""), "01 0102030405060708 04"},
		{"draining", failure(schema.Draining, ""), "01 0102030405060708 05"},
		{"no workers", failure(schema.NoWorkers, ""), "01 0102030405060708 06"},
		{"unsupported", failure(schema.Unsupported, ""), "01 0102030405060708 07"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			frame := unhex(t, tt.frame)
			if got := schema.AppendReply([]byte("x"), id, tt.answer); !bytes.Equal(got, append([]byte("x"), frame...)) {
				t.Errorf("written: %x, want 78%x", got, frame)
			}
			gotID, got, err := schema.ParseReply(frame)
			if err != nil || gotID != id {
				t.Errorf("read: id %x, %v", gotID, err)
			}
			if diff := cmp.Diff(tt.answer, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestBudget(t *testing.T) {
	tests := []struct {
		name         string
		budget, want time.Duration
	}{
		{"none", 0, 0},
		{"rounded up", time.Nanosecond, time.Millisecond},
		{"whole", 5 * time.Millisecond, 5 * time.Millisecond},
		{"just over", 5*time.Millisecond + 1, 6 * time.Millisecond},
		{"run out is not none", -time.Second, time.Millisecond},
		{"longest", math.MaxInt32 * time.Millisecond, math.MaxInt32 * time.Millisecond},
		{"longer", math.MaxInt64, math.MaxInt32 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			frame := schema.AppendRequest(nil, schema.Request{Budget: tt.budget, Question: schema.Question{Block: schema.Number(1)}})
			if got, err := schema.ParseRequest(frame); err != nil || got.Budget != tt.want {
				t.Errorf("got %v, %v, want %v", got.Budget, err, tt.want)
			}
		})
	}
}

func TestParseRequestErrors(t *testing.T) {
	const head = "01 0000000000000007 00000000 "
	const index = " 0000000000000000 "
	tests := []struct {
		name, frame string
		id          uint64
		want        error
	}{
		{"nothing", "", 0, schema.ErrFrameShort},
		{"no whole id", "01 00000000000000", 0, schema.ErrFrameShort},
		{"head alone", head + "01" + index, 7, schema.ErrFrameShort},
		{"half a number", head + "01" + index + "00000000", 7, schema.ErrFrameShort},
		{"long number", head + "01" + index + "000000000000000000", 7, schema.ErrFrameShort},
		{"hash of 31 bytes", head + "02" + index + strings.Repeat("00", 31), 7, schema.ErrFrameShort},
		{"no tag", head + "03" + index, 7, schema.ErrFrameShort},
		{"two tags", head + "03" + index + "0101", 7, schema.ErrFrameShort},
		{"tag 0", head + "03" + index + "00", 7, schema.ErrFrameKind},
		{"unknown tag", head + "03" + index + "06", 7, schema.ErrFrameKind},
		{"kind 0", head + "00" + index, 7, schema.ErrFrameKind},
		{"unknown kind", head + "04" + index + "00", 7, schema.ErrFrameKind},
		{"later version", "02 0000000000000007 00000000 01" + index + "0000000000000001", 7, schema.ErrFrameVersion},
		{"later version, shorter", "02 0000000000000007", 7, schema.ErrFrameVersion},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := schema.ParseRequest(unhex(t, tt.frame))
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if !errors.Is(err, schema.ErrFrameShort) && got.ID != tt.id {
				t.Errorf("id is %d, want %d", got.ID, tt.id)
			}
		})
	}
}

// A selector that names nothing must not become a question about something.
func TestRequestWithoutBlock(t *testing.T) {
	frame := schema.AppendRequest(nil, schema.Request{ID: 1})
	if _, err := schema.ParseRequest(frame); !errors.Is(err, schema.ErrFrameKind) {
		t.Errorf("got %v, want %v", err, schema.ErrFrameKind)
	}
}

func TestParseReplyErrors(t *testing.T) {
	tests := []struct {
		name, frame string
		id          uint64
		want        error
	}{
		{"nothing", "", 0, schema.ErrFrameShort},
		{"no whole id", "01 00000000000000", 0, schema.ErrFrameShort},
		{"no code", "01 0000000000000007", 7, schema.ErrFrameShort},
		{"no result", "01 0000000000000007 00", 7, schema.ErrFrameShort},
		{"packed, but nothing", "01 0000000000000007 80 00000001 00000002", 7, schema.ErrFrameShort},
		{"later version", "02 0000000000000007", 7, schema.ErrFrameVersion},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, a, err := schema.ParseReply(unhex(t, tt.frame))
			if !errors.Is(err, tt.want) || id != tt.id {
				t.Errorf("got id %d, %v, want id %d, %v", id, err, tt.id, tt.want)
			}
			if a.Result != nil || a.Err != nil {
				t.Errorf("answer is %+v", a)
			}
		})
	}
}

func TestReplyWithUnknownCode(t *testing.T) {
	_, a, err := schema.ParseReply(unhex(t, "01 0000000000000007 ff 61"))
	if err != nil || a.Err == nil {
		t.Fatalf("got %+v, %v", a, err)
	}
	if got := a.Err.Reply().Message; got != "internal error" {
		t.Errorf("callers see %q", got)
	}
}

// An error without a code is still an error to whoever reads it.
func TestReplyWithoutCode(t *testing.T) {
	_, a, err := schema.ParseReply(schema.AppendReply(nil, 1, schema.Answer{Err: &schema.Error{Detail: "{}"}}))
	if err != nil || a.Err == nil || a.Err.Code != schema.Internal {
		t.Errorf("got %+v, %v, want an internal error", a, err)
	}
}

func TestReplyDetailIsBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	frame := schema.AppendReply(nil, 1, schema.Answer{Err: &schema.Error{Code: schema.Internal, Detail: long}})
	if len(frame) > 600 {
		t.Errorf("frame of %d bytes", len(frame))
	}
	_, a, err := schema.ParseReply(append(frame, long...))
	if err != nil || len(a.Err.Detail) > 512 {
		t.Errorf("detail of %d bytes, %v", len(a.Err.Detail), err)
	}
}

// TestParseReplyLaterCode: what a later version calls an error is one.
func TestParseReplyLaterCode(t *testing.T) {
	for code := schema.Codes; code < 0x80; code++ {
		frame := schema.AppendReply(nil, 7, schema.Answer{Err: &schema.Error{Code: schema.Code(code), Detail: "why"}})
		id, a, err := schema.ParseReply(frame)
		if id != 7 || err != nil || a.Err == nil || a.Err.Code != schema.Internal || a.Err.Detail != "why" {
			t.Errorf("code %d: got %d, %+v, %v", code, id, a, err)
		}
	}
}

// FuzzParseRequest: what is read is written back to the same bytes.
func FuzzParseRequest(f *testing.F) {
	for _, b := range []schema.Selector{schema.Number(1 << 40), schema.BlockHash(schema.Hash{1}), schema.Tagged(schema.Safe)} {
		f.Add(schema.AppendRequest(nil, schema.Request{ID: 1, Budget: time.Second, Question: schema.Question{Block: b, Index: 2}}))
	}
	f.Add([]byte(`{"jsonrpc":"2.0"}`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		r, err := schema.ParseRequest(frame)
		if err != nil {
			return
		}
		if got := schema.AppendRequest(nil, r); !bytes.Equal(got, frame) {
			t.Errorf("%x became %x", frame, got)
		}
		if len(frame) > schema.MaxRequestFrame {
			t.Errorf("accepted %d bytes", len(frame))
		}
	})
}

// FuzzParseReply: what is read is written back to the same bytes, except for a
// detail over its bound.
func FuzzParseReply(f *testing.F) {
	f.Add(schema.AppendReply(nil, 1, schema.Answer{Result: schema.Null}))
	f.Add(schema.AppendReply(nil, 1, schema.Answer{Packed: schema.Packed{Deflate: []byte("x"), Size: 1, CRC: 2}}))
	f.Add([]byte("\x01\x80\x00\x00\x00\x00\x00\x00\x04d")) // a code of a later version
	f.Add(schema.AppendReply(nil, 1<<63, schema.Answer{Err: &schema.Error{Code: schema.Pruned, Detail: "detail"}}))
	f.Fuzz(func(t *testing.T, frame []byte) {
		id, a, err := schema.ParseReply(frame)
		if err != nil {
			return
		}
		if (a.Err == nil) != (len(a.Result) > 0 || !a.Packed.IsZero()) || len(a.Result) > 0 && !a.Packed.IsZero() {
			t.Fatalf("%x: answer is %+v", frame, a)
		}
		got := schema.AppendReply(nil, id, a)
		if a.Err != nil {
			frame = bytes.Clone(frame[:min(len(frame), len(got))])
			at := 9
			frame[at] &^= 0x80                  // only results are packed
			if int(frame[at]) >= schema.Codes { // of a later version
				frame[at] = byte(schema.Internal)
			}
		}
		if !bytes.Equal(got, frame) {
			t.Errorf("%x became %x", frame, got)
		}
	})
}

func TestFrameAllocations(t *testing.T) {
	req := schema.Request{ID: 1, Budget: time.Second, Question: schema.Question{Block: schema.BlockHash(schema.Hash{1})}}
	buf := make([]byte, 0, 256)
	var got schema.Answer
	allocs := testing.AllocsPerRun(100, func() {
		buf = schema.AppendRequest(buf[:0], req)
		_, _ = schema.ParseRequest(buf)
		buf = schema.AppendReply(buf[:0], 1, schema.Answer{Result: schema.Null})
		_, got, _ = schema.ParseReply(buf)
	})
	if allocs != 0 || string(got.Result) != "null" {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

func BenchmarkFrames(b *testing.B) {
	req := schema.Request{ID: 1, Budget: time.Second, Question: schema.Question{Block: schema.BlockHash(schema.Hash{1})}}
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		buf = schema.AppendRequest(buf[:0], req)
		_, _ = schema.ParseRequest(buf)
		buf = schema.AppendReply(buf[:0], 1, schema.Answer{Result: schema.Null})
		_, _, _ = schema.ParseReply(buf)
	}
}
