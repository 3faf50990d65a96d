package archive

import (
	"testing"
)

func BenchmarkBlock(b *testing.B) {
	e := must[*Era1](b)(Open(sepolia(b, sepolia21)))
	defer e.Close()
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		if _, err := e.Block(e.Start() + i%MaxEra1Blocks); err != nil {
			b.Fatal(err)
		}
		i += 4099
	}
}

func BenchmarkVerify(b *testing.B) {
	e := must[*Era1](b)(Open(sepolia(b, sepolia21)))
	defer e.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Verify(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
