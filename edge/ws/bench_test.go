package ws_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	gobwas "github.com/gobwas/ws"

	"github.com/ommer/ommer/edge/ws"
)

// question is a lookup as a client sends it, of about 120 bytes.
const question = `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x29c","0x0"],"padding":"0123456789abcdef"}`

// BenchmarkReader reads one message that was there whole, or in reads of 4 KiB. The
// input is copied anew each time, as a read from a socket would.
func BenchmarkReader(b *testing.B) {
	tests := []struct {
		name string
		in   []byte
		read int
	}{
		{"120 B text whole", text(question[:120]), 1 << 21},
		{"120 B text in two reads", text(question[:120]), 64},
		{"120 B text in two fragments", join(begin(ws.OpText, question[:60]), end(question[60:120])), 1 << 21},
		{"1 MiB text whole", text(strings.Repeat("x", 1<<20)), 1 << 21},
		{"1 MiB text in 4 KiB reads", text(strings.Repeat("x", 1<<20)), 4096},
		{"1 MiB of é in 4 KiB reads", text(strings.Repeat("é", 1<<19)), 4096},
		{"1 MiB binary in 4 KiB reads", blob(strings.Repeat("x", 1<<20)), 4096},
		{"64 KiB text in single bytes", text(strings.Repeat("x", 1<<16)), 1},
		{"ping", ping("1234"), 1 << 21},
	}
	for _, tt := range tests {
		b.Run(tt.name, func(b *testing.B) {
			r := ws.NewReader(ws.NewPool(ws.Limits{}))
			work := make([]byte, min(len(tt.in), tt.read))
			b.SetBytes(int64(len(tt.in)))
			b.ReportAllocs()
			for b.Loop() {
				events := 0
				for at := 0; at < len(tt.in); at += len(work) {
					in := work[:copy(work, tt.in[at:])]
					for len(in) > 0 {
						n, ev, _, err := r.Next(in)
						if err != nil {
							b.Fatal(err)
						}
						if ev != ws.More {
							events++
						}
						in = in[n:]
					}
				}
				r.Release()
				if events != 1 {
					b.Fatalf("%d events", events)
				}
			}
		})
	}
}

// BenchmarkHeader is why the header is read by hand: an empty frame read by this
// package, all rules included, beside the bare reading of its header by the library.
func BenchmarkHeader(b *testing.B) {
	for _, n := range []int{0, 126, 65536} {
		in := text(strings.Repeat("x", n))
		header := len(in) - n
		// Past its header the frame is cut off: only the header is measured.
		b.Run(fmt.Sprintf("ours/%d bytes", header), func(b *testing.B) {
			pool := ws.NewPool(ws.Limits{})
			b.ReportAllocs()
			for b.Loop() {
				r := ws.NewReader(pool)
				if _, _, _, err := r.Next(in[:header]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("gobwas/%d bytes", header), func(b *testing.B) {
			src := bytes.NewReader(nil)
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(in[:header])
				h, err := gobwas.ReadHeader(src)
				if err == nil {
					err = gobwas.CheckHeader(h, gobwas.StateServerSide)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkUnmask is the XOR alone, the library's and as a loop would do it.
func BenchmarkUnmask(b *testing.B) {
	for _, n := range []int{16, 120, 4096, 1 << 20} {
		p := make([]byte, n)
		b.Run(fmt.Sprintf("gobwas/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				gobwas.Cipher(p, testMask, 0)
			}
		})
		b.Run(fmt.Sprintf("loop/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				for i := range p {
					p[i] ^= testMask[i%4]
				}
			}
		})
	}
}

func BenchmarkAppendFrame(b *testing.B) {
	payload := bytes.Repeat([]byte("x"), 1500)
	dst := make([]byte, 0, 2048)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		dst = ws.AppendFrame(dst[:0], ws.OpText, payload)
	}
}

func BenchmarkAppendUpgrade(b *testing.B) {
	key := []byte(rfcKey)
	dst := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		dst = ws.AppendUpgrade(dst[:0], key)
	}
}
