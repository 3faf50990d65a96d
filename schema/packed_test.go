package schema_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
)

func TestPack(t *testing.T) {
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	uncle := []byte(`{"hash":"0x` + strings.Repeat("0123456789abcdef", 20) + `","logsBloom":"0x` + strings.Repeat("0", 512) + `"}`)
	for _, tt := range []struct {
		name   string
		result []byte
		packs  bool
	}{
		{"nothing", nil, false},
		{"null", schema.Null, false},
		{"small", uncle[:400], false},
		{"mostly zeros", uncle, true},
		{"noise", noise, false},
		{"large", bytes.Repeat(uncle, 100), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was := bytes.Clone(tt.result)
			p := schema.Pack(tt.result)
			if p.IsZero() == tt.packs || !bytes.Equal(was, tt.result) {
				t.Fatalf("packed: %v, want %v", !p.IsZero(), tt.packs)
			}
			if !tt.packs {
				return
			}
			got, err := schematest.Unpack(p)
			if err != nil || !bytes.Equal(got, tt.result) {
				t.Errorf("%v, %d bytes, want %d", err, len(got), len(tt.result))
			}
			if len(p.Deflate) > len(tt.result)/2 {
				t.Errorf("%d bytes of %d", len(p.Deflate), len(tt.result))
			}
		})
	}
}
