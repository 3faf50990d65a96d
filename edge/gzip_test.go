package edge

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ommer/ommer/edge/http1"
	"github.com/ommer/ommer/schema"
)

func TestAcceptsGzip(t *testing.T) {
	for _, tt := range []struct {
		fields []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZip"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"gzip, deflate, br, zstd"}, true},
		{[]string{"deflate,gzip"}, true},
		{[]string{"br", "gzip"}, true},
		{[]string{"deflate, br"}, false},
		{[]string{"identity"}, false},
		{[]string{"gzipped"}, false},
		{[]string{"*"}, true},
		{[]string{"*;q=0"}, false},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip;q=0.000"}, false},
		{[]string{"gzip ; q=0.0"}, false},
		{[]string{"gzip;Q=0"}, false},
		{[]string{"gzip;q=0.001"}, true},
		{[]string{"gzip;q=1.0"}, true},
		{[]string{"gzip;q="}, false},
		{[]string{"gzip;q"}, false},
		{[]string{`gzip;q="1"`}, false},
		{[]string{"gzip;q=0.0001"}, false},
		{[]string{"gzip;q=1.001"}, false},
		{[]string{"gzip;q=2"}, false},
		{[]string{"gzip;q=.5"}, false},
		{[]string{"gzip;level=9"}, false},
		{[]string{"gzip;q=0.1, identity;q=1"}, false},
		{[]string{"gzip;q=0.5, identity;q=0.5"}, true},
		{[]string{"identity, gzip"}, true},
		{[]string{"identity;q=0.4, *;q=0.5"}, true},
		{[]string{"*, gzip;q=0"}, false},
		{[]string{"gzip;q=0, *"}, false},
		{[]string{"*;q=0, gzip;q=0.5"}, true},
		{[]string{"identity;q=0, *;q=0.5"}, true},
	} {
		r := new(http1.Request)
		r.Fields = append(r.Fields, http1.Field{Name: []byte("Accept"), Value: []byte("gzip")})
		for _, f := range tt.fields {
			r.Fields = append(r.Fields, http1.Field{Name: []byte("Accept-Encoding"), Value: []byte(f)})
		}
		if got := acceptsGzip(r); got != tt.want {
			t.Errorf("%q: %v, want %v", tt.fields, got, tt.want)
		}
	}
}

func TestCRCOfBoth(t *testing.T) {
	for range 1000 {
		a, b := noise(rand.IntN(3000)), noise(rand.IntN(3000))
		want := crc32.ChecksumIEEE(append(bytes.Clone(a), b...))
		if got := crcOfBoth(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), uint32(len(b))); got != want {
			t.Fatalf("%d and %d bytes: %#x, want %#x", len(a), len(b), got, want)
		}
	}
	// The longest there is: as many zeros behind one byte, in 16 steps of doubling.
	zeros := make([]byte, 1<<16)
	crc, n := crc32.ChecksumIEEE(zeros), uint32(len(zeros))
	for n < 1<<31 {
		crc, n = crcOfBoth(crc, crc, n), 2*n
	}
	half := crc
	again := crc32.ChecksumIEEE(nil)
	for range 1 << 3 {
		part := crc32.ChecksumIEEE(zeros)
		for m := uint32(len(zeros)); m < 1<<28; m *= 2 {
			part = crcOfBoth(part, part, m)
		}
		again = crcOfBoth(again, part, 1<<28)
	}
	if half != again {
		t.Errorf("2 GiB of zeros: %#x by doubling, %#x in eight parts", half, again)
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// unzip reads what must be exactly one gzip member.
func unzip(b []byte) ([]byte, error) {
	in := bytes.NewReader(b)
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	z.Multistream(false) // browsers read no further than the first
	out, err := io.ReadAll(z)
	if err == nil && in.Len() > 0 {
		err = fmt.Errorf("%d bytes behind the member", in.Len())
	}
	return out, err
}

// TestZip: whatever is spliced into whatever, and in which order, comes out whole.
func TestZip(t *testing.T) {
	var z zipper
	for range 500 {
		var body, want []byte
		var splices []splice
		for range rand.IntN(6) {
			var literal []byte
			switch rand.IntN(4) {
			case 0: // none: two splices side by side
			case 1:
				literal = noise(rand.IntN(200_000)) // several stored blocks
			case 2:
				literal = []byte(strings.Repeat(`{"jsonrpc":"2.0","id":1,"result":null},`, rand.IntN(4000)))
			default:
				literal = []byte(`{"jsonrpc":"2.0","id":1,"result":`)
			}
			body, want = append(body, literal...), append(want, literal...)
			result := append(bytes.Repeat([]byte("00"), 300+rand.IntN(3000)), noise(100)...)
			splices = append(splices, splice{len(body), schema.Pack(result)})
			want = append(want, result...)
		}
		body, want = append(body, '}'), append(want, '}')
		got, err := unzip(z.zip(body, splices))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d splices: %v, %d bytes, want %d", len(splices), err, len(got), len(want))
		}
	}
}

func uncleJSON() []byte {
	return []byte(`{"hash":"0x` + fmt.Sprintf("%x", noise(400)) + `","logsBloom":"0x` + strings.Repeat("0", 512) + `"}`)
}

func TestZipDoesNotAllocate(t *testing.T) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"result":}`)
	splices := []splice{{len(body) - 1, schema.Pack(uncleJSON())}}
	z := new(zipper)
	z.zip(body, splices)
	if n := testing.AllocsPerRun(100, func() { z.zip(body, splices) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// BenchmarkGzip compares what a response costs with compressing it each time.
func BenchmarkGzip(b *testing.B) {
	result := uncleJSON()
	whole := append(append([]byte(`{"jsonrpc":"2.0","id":1,"result":`), result...), '}')
	b.Run("spliced", func(b *testing.B) {
		body := []byte(`{"jsonrpc":"2.0","id":1,"result":}`)
		splices := []splice{{len(body) - 1, schema.Pack(result)}}
		z := new(zipper)
		b.ReportAllocs()
		for b.Loop() {
			z.zip(body, splices)
		}
		b.ReportMetric(float64(len(z.out)), "bytes")
	})
	b.Run("compressed", func(b *testing.B) {
		var to bytes.Buffer
		z, err := gzip.NewWriterLevel(&to, gzip.BestSpeed)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			to.Reset()
			z.Reset(&to)
			_, _ = z.Write(whole) // a bytes.Buffer takes everything
			_ = z.Close()
		}
		b.ReportMetric(float64(to.Len()), "bytes")
	})
}
