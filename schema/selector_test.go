package schema_test

import (
	"strings"
	"testing"

	"github.com/ommer/ommer/schema"
)

func TestSelector(t *testing.T) {
	hash := schema.Hash{0: 0x0a, 31: 0xff}
	tests := []struct {
		name   string
		s      schema.Selector
		kind   schema.Kind
		number uint64
		hash   schema.Hash
		tag    schema.Tag
		text   string
		method schema.Method
	}{
		{"number", schema.Number(0x29c), schema.ByNumber, 0x29c, schema.Hash{}, 0, "0x29c", schema.UncleByNumber},
		{"number 0", schema.Number(0), schema.ByNumber, 0, schema.Hash{}, 0, "0x0", schema.UncleByNumber},
		{"hash", schema.BlockHash(hash), schema.ByHash, 0, hash, 0, "0x0a" + strings.Repeat("0", 60) + "ff", schema.UncleByHash},
		{"latest", schema.Tagged(schema.Latest), schema.ByTag, 0, schema.Hash{}, schema.Latest, "latest", schema.UncleByNumber},
		{"earliest", schema.Tagged(schema.Earliest), schema.ByTag, 0, schema.Hash{}, schema.Earliest, "earliest", schema.UncleByNumber},
		{"pending", schema.Tagged(schema.Pending), schema.ByTag, 0, schema.Hash{}, schema.Pending, "pending", schema.UncleByNumber},
		{"safe", schema.Tagged(schema.Safe), schema.ByTag, 0, schema.Hash{}, schema.Safe, "safe", schema.UncleByNumber},
		{"finalized", schema.Tagged(schema.Finalized), schema.ByTag, 0, schema.Hash{}, schema.Finalized, "finalized", schema.UncleByNumber},
		{"no tag", schema.Tagged(0), schema.ByTag, 0, schema.Hash{}, 0, "tag(0)", schema.UncleByNumber},
		{"unknown tag", schema.Tagged(9), schema.ByTag, 0, schema.Hash{}, 9, "tag(9)", schema.UncleByNumber},
		{"zero value", schema.Selector{}, 0, 0, schema.Hash{}, 0, "none", schema.UncleByNumber},
	}
	seen := map[schema.Selector]string{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.s
			if s.Kind() != tt.kind || s.Number() != tt.number || s.Hash() != tt.hash || s.Tag() != tt.tag {
				t.Errorf("got kind %d, number %d, hash %v, tag %d", s.Kind(), s.Number(), s.Hash(), s.Tag())
			}
			if got := s.String(); got != tt.text {
				t.Errorf("text is %q, want %q", got, tt.text)
			}
			if got := (schema.Question{Block: s}).Method(); got != tt.method {
				t.Errorf("method is %v, want %v", got, tt.method)
			}
			if other, ok := seen[s]; ok {
				t.Errorf("equal to %q", other)
			}
			seen[s] = tt.name
		})
	}
}

func TestMethodNamed(t *testing.T) {
	for _, m := range schema.Methods {
		if got, ok := schema.MethodNamed([]byte(m.String())); !ok || got != m {
			t.Errorf("%v became %v, %v", m, got, ok)
		}
	}
	for _, name := range []string{"", "other", "eth_getunclebyblocknumberandindex", "eth_getUncleByBlockNumberAndIndex "} {
		if got, ok := schema.MethodNamed([]byte(name)); ok {
			t.Errorf("%q is %v", name, got)
		}
	}
}
