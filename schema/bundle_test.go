package schema_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ommer/ommer/schema"
)

// See TestRequestGolden: neither may these bytes change.
func TestBundleGolden(t *testing.T) {
	first := schema.Request{ID: 1, Budget: time.Second, Question: schema.Question{Block: schema.Number(7)}}
	second := schema.Request{ID: 2, Question: schema.Question{Block: schema.Tagged(schema.Latest), Index: 1}}
	var b schema.Bundle
	for range 2 { // the second time in the same memory
		b.AddRequest(first)
		alone := unhex(t, "01 0000000000000001 000003e8 01 0000000000000000 0000000000000007")
		if got := b.Message(); !bytes.Equal(got, alone) {
			t.Errorf("one frame: %x, want %x", got, alone)
		}
		b.AddRequest(second)
		both := unhex(t, "08 0000001e 01 0000000000000001 000003e8 01 0000000000000000 0000000000000007"+
			"00000017 01 0000000000000002 00000000 03 0000000000000001 01")
		if got := b.Message(); !bytes.Equal(got, both) {
			t.Errorf("two frames: %x, want %x", got, both)
		}
		if b.Frames() != 2 || b.Size() != len(both) {
			t.Errorf("%d frames of %d bytes, want 2 of %d", b.Frames(), b.Size(), len(both))
		}
		b.Reset(1 << 10)
	}
	b.AddReply(3, schema.Answer{Result: []byte("{}")})
	b.AddReply(4, schema.Answer{Err: &schema.Error{Code: schema.Timeout}})
	replies := unhex(t, "08 0000000c 01 0000000000000003 00 7b7d 0000000a 01 0000000000000004"+hex2(byte(schema.Timeout)))
	if got := b.Message(); !bytes.Equal(got, replies) {
		t.Errorf("replies: %x, want %x", got, replies)
	}
	b.Reset(0)
	if b.Frames() != 0 || b.Size() != 0 {
		t.Error("not empty after Reset")
	}
}

func hex2(b byte) string { return string("0123456789abcdef"[b>>4]) + string("0123456789abcdef"[b&15]) }

func TestFrames(t *testing.T) {
	for _, tt := range []struct {
		name, message string
		want          []string // in hexadecimal
	}{
		{"a frame", "01 0203", []string{"010203"}},
		{"a frame of a later version", "02 0203", []string{"020203"}},
		{"JSON", "5b 5d", []string{"5b5d"}},
		{"two", "08 00000002 aabb 00000001 cc", []string{"aabb", "cc"}},
		{"one", "08 00000001 cc", []string{"cc"}},
		{"a bundle in it is a frame", "08 00000006 08 00000001 cc", []string{"0800000001cc"}},
		{"nothing", "", []string{""}},
		{"no frame", "08", []string{""}},
		{"an empty frame ends it", "08 00000000 00000001 cc", []string{""}},
		{"half a length", "08 00000001 cc 0000", []string{"cc", ""}},
		{"half a frame", "08 00000001 cc 00000002 aa", []string{"cc", ""}},
		{"the longest length", "08 ffffffff aa", []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for f := range schema.Frames(unhex(t, tt.message)) {
				var s strings.Builder
				for _, b := range f {
					s.WriteString(hex2(b))
				}
				got = append(got, s.String())
			}
			if strings.Join(got, ",") != strings.Join(tt.want, ",") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for range schema.Frames(unhex(t, "08 00000001 aa 00000001 bb")) {
		break // and no more are yielded
	}
}

// FuzzFrames: what is read as several whole frames is written back to the same bytes,
// and none reaches beyond the message.
func FuzzFrames(f *testing.F) {
	var b schema.Bundle
	b.AddReply(1, schema.Answer{Result: []byte("{}")})
	f.Add(bytes.Clone(b.Message()))
	b.AddReply(2, schema.Answer{Result: []byte("[]")})
	f.Add(bytes.Clone(b.Message()))
	f.Add([]byte{8, 0, 0, 0, 9, 1})
	f.Add([]byte{8, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, message []byte) {
		again, whole := []byte{schema.FrameBundle}, true
		for frame := range schema.Frames(message) {
			if cap(frame) > len(frame) && len(message) > 0 && message[0] == schema.FrameBundle {
				t.Error("appending to a frame would overwrite the next")
			}
			whole = whole && len(frame) > 0
			n := len(frame)
			again = append(again, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
			again = append(again, frame...)
		}
		if len(message) > 0 && message[0] == schema.FrameBundle && whole && !bytes.Equal(again, message) {
			t.Errorf("read from %x, written as %x", message, again)
		}
	})
}
