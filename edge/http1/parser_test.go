package http1

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// want calls Next and fails unless exactly that comes of it.
func want(t *testing.T, p *Parser, in string, r *Request, n int, ev Event, why Reason) {
	t.Helper()
	gotN, gotEv, err := p.Next([]byte(in), r)
	var gotWhy Reason
	if err != nil {
		gotWhy = err.Reason
	}
	if gotN != n || gotEv != ev || gotWhy != why {
		t.Fatalf("Next(%.60q): got %d, %d, %v; want %d, %d, %v", in, gotN, gotEv, gotWhy, n, ev, why)
	}
}

func TestParserIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Parser{}); size > 64 {
		t.Errorf("a parser has %d bytes, want at most 64: there is one per connection", size)
	}
}

func TestWholeBodyIsNotCopied(t *testing.T) {
	for _, tt := range []struct{ name, head, body string }{
		{"length", head("POST / HTTP/1.1", "Content-Length: 4"), "data"},
		{"one chunk", head("POST / HTTP/1.1", "Transfer-Encoding: chunked"), "4\r\ndata\r\n0\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := []byte(tt.head + tt.body)
			p := NewPool(Limits{}).Parser()
			var r Request
			n, _, _ := p.Next(in, &r)
			if _, ev, err := p.Next(in[n:], &r); ev != Body || err != nil {
				t.Fatalf("got %v, %v, want a body", ev, err)
			}
			if &r.Body[0] != &in[bytes.Index(in, []byte("data"))] {
				t.Error("the body does not alias the input")
			}
			if p.body != nil {
				t.Error("the parser took a buffer")
			}
			if cap(r.Body) != len(r.Body) {
				t.Error("appending to the body would overwrite what follows it")
			}
		})
	}
}

// TestClaimedLengthAllocatesNothing: memory is taken for what came, not for what
// was announced.
func TestClaimedLengthAllocatesNothing(t *testing.T) {
	for _, tt := range []struct{ name, head, first string }{
		{"length", head("POST / HTTP/1.1", "Content-Length: 1048576"), "x"},
		{"chunk", head("POST / HTTP/1.1", "Transfer-Encoding: chunked"), "100000\r\nx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := NewPool(Limits{}).Parser()
			var r Request
			want(t, &p, tt.head, &r, len(tt.head), Head, 0)
			want(t, &p, "", &r, 0, More, 0)
			if p.body != nil {
				t.Error("a buffer was taken before anything came")
			}
			want(t, &p, tt.first, &r, len(tt.first), More, 0)
			if c := cap(p.body.b); c > smallestBuffer {
				t.Errorf("one byte came and the buffer has %d", c)
			}
		})
	}
}

func TestIdleParserHoldsNothing(t *testing.T) {
	p := NewPool(Limits{}).Parser()
	var r Request
	post := head("POST / HTTP/1.1", "Content-Length: 4")
	for range 2 {
		want(t, &p, post, &r, len(post), Head, 0)
		want(t, &p, "da", &r, 2, More, 0)
		want(t, &p, "ta", &r, 2, Body, 0)
		if string(r.Body) != "data" {
			t.Fatalf("got body %q", r.Body)
		}
		want(t, &p, "", &r, 0, More, 0)
		if !p.Idle() || p != (Parser{pool: p.pool}) {
			t.Fatalf("between requests: %+v, want nothing but the pool", p)
		}
	}
	want(t, &p, post, &r, len(post), Head, 0)
	want(t, &p, "data", &r, 4, Body, 0)
	p.Release()
	want(t, &p, post, &r, len(post), Head, 0)
}

// TestGivesBack: a parser holds a buffer while it collects, and until the body was
// handled; whatever ends that gives the buffer back.
func TestGivesBack(t *testing.T) {
	post := head("POST / HTTP/1.1", "Transfer-Encoding: chunked")
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, p *Parser, r *Request)
	}{
		{"the next request", func(t *testing.T, p *Parser, r *Request) {
			want(t, p, "2\r\nta\r\n0\r\n\r\n", r, 12, Body, 0)
			p.Discard() // between requests: nothing
			if string(r.Body) != "data" || p.Buffered() == 0 {
				t.Errorf("body %q in %d bytes of buffers", r.Body, p.Buffered())
			}
			want(t, p, "", r, 0, More, 0)
		}},
		{"release", func(t *testing.T, p *Parser, r *Request) {
			want(t, p, "2\r\nta\r\n0\r\n\r\n", r, 12, Body, 0)
			p.Release()
		}},
		{"release within the body", func(_ *testing.T, p *Parser, _ *Request) { p.Release() }},
		{"an error", func(t *testing.T, p *Parser, r *Request) { want(t, p, "x", r, 0, More, ChunkInvalid) }},
		{"discard", func(_ *testing.T, p *Parser, _ *Request) { p.Discard() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := NewPool(Limits{}).Parser()
			var r Request
			want(t, &p, post, &r, len(post), Head, 0)
			if got := p.Buffered(); got != 0 {
				t.Fatalf("%d bytes held before anything came", got)
			}
			want(t, &p, "2\r\nda\r\n", &r, 7, More, 0)
			if got := p.Buffered(); got != smallestBuffer {
				t.Fatalf("%d bytes held of a body under way, want %d", got, smallestBuffer)
			}
			tt.end(t, &p, &r)
			if got := p.Buffered(); got != 0 {
				t.Errorf("%d bytes held", got)
			}
		})
	}
}

// TestMemoryFollowsWhatArrived: the buffer of a body doubles with what came, and is
// in the end no larger than the body.
func TestMemoryFollowsWhatArrived(t *testing.T) {
	const size = DefaultBody
	p := NewPool(Limits{}).Parser()
	var r Request
	post := head("POST / HTTP/1.1", "Content-Length: "+strconv.Itoa(size))
	want(t, &p, post, &r, len(post), Head, 0)
	grown, before := 0, 0
	for fed := 1; fed < size; fed++ {
		want(t, &p, "x", &r, 1, More, 0)
		got := p.Buffered()
		if got != before {
			before = got
			grown++
		}
		if most := max(smallestBuffer, 2*fed); got > most {
			t.Fatalf("%d bytes held after %d arrived, want at most %d", got, fed, most)
		}
	}
	if before != size || grown != 12 { // 512 doubled 11 times
		t.Errorf("%d bytes held in the end, grown %d times; want %d and 12", before, grown, size)
	}
	want(t, &p, "x", &r, 1, Body, 0)
}

// TestBuffersAreUsedAgain: once the pool has a buffer, a body in parts costs none.
func TestBuffersAreUsedAgain(t *testing.T) {
	p := NewPool(Limits{}).Parser()
	var r Request
	post, part := []byte(head("POST / HTTP/1.1", "Content-Length: 40000")), bytes.Repeat([]byte("x"), 20_000)
	if got := testing.AllocsPerRun(100, func() {
		p.Next(post, &r)
		p.Next(part, &r)
		if _, ev, _ := p.Next(part, &r); ev != Body {
			t.Fatal("no body")
		}
		p.Next(nil, &r)
	}); got > 1 { // under the race detector the pool forgets one in four
		t.Errorf("%v allocations, want none; without the pool there are 3", got)
	}
}

func TestIdle(t *testing.T) {
	p := NewPool(Limits{}).Parser()
	var r Request
	check := func(want bool) {
		t.Helper()
		if got := p.Idle(); got != want {
			t.Fatalf("Idle: got %v, want %v", got, want)
		}
	}
	post := head("POST / HTTP/1.1", "Content-Length: 1")
	check(true)
	want(t, &p, "\r\n", &r, 2, More, 0)
	check(false) // it may come once
	want(t, &p, "P", &r, 0, More, 0)
	check(false)
	want(t, &p, post, &r, len(post), Head, 0)
	check(false)
	want(t, &p, "x", &r, 1, Body, 0)
	check(true)
	want(t, &p, "\x00", &r, 0, More, MethodInvalid)
	check(false)
}

func TestDiscard(t *testing.T) {
	const next = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	for _, tt := range []struct {
		name, head, body string
		why              Reason
	}{
		{"length", head("POST / HTTP/1.1", "Content-Length: 4"), "data", 0},
		{"chunks", head("POST / HTTP/1.1", "Transfer-Encoding: chunked"), "2\r\nda\r\n2\r\nta\r\n0\r\n\r\n", 0},
		{"nothing", head("GET / HTTP/1.1"), "", 0},
		{"over the limit", head("POST / HTTP/1.1", "Transfer-Encoding: chunked"), "5\r\nabcde\r\n6", BodyLong},
	} {
		for _, after := range []int{0, min(5, len(tt.body))} {
			t.Run(tt.name, func(t *testing.T) {
				p := NewPool(Limits{Body: 10}).Parser()
				p.Discard() // between requests: nothing
				var r Request
				want(t, &p, tt.head, &r, len(tt.head), Head, 0)
				in := tt.body + next
				if after > 0 {
					n, ev, err := p.Next([]byte(in[:after]), &r)
					if err != nil {
						t.Fatal(err)
					}
					in = in[n:]
					if ev == Body {
						return // the whole body came before Discard
					}
				}
				p.Discard()
				if p.body != nil {
					t.Error("a buffer is held")
				}
				if tt.why != 0 {
					want(t, &p, in, &r, 0, More, tt.why)
					return
				}
				r.Body = []byte("stale")
				want(t, &p, in, &r, len(in)-len(next), Body, 0)
				if r.Body != nil {
					t.Errorf("got body %q, want none", r.Body)
				}
				want(t, &p, next, &r, len(next), Head, 0)
				if p.discard {
					t.Error("the next body would be dropped too")
				}
			})
		}
	}
}

func TestReleaseWithinABody(t *testing.T) {
	p := NewPool(Limits{}).Parser()
	var r Request
	post := head("POST / HTTP/1.1", "Content-Length: 4")
	want(t, &p, post, &r, len(post), Head, 0)
	want(t, &p, "da", &r, 2, More, 0)
	p.Release()
	if p.body != nil {
		t.Error("a buffer is held")
	}
	want(t, &p, "ta", &r, 0, More, Released)
}

func TestLargeBuffersAreNotPooled(t *testing.T) {
	pool := NewPool(Limits{})
	for _, tt := range []struct {
		size int
		want bool
	}{{largestPooled, true}, {largestPooled + 1, false}} {
		pool.put(&buffer{make([]byte, tt.size)})
		// The pool may drop what it is given, so only one direction is certain.
		if b, ok := pool.buffers.Get().(*buffer); ok && (!tt.want || len(b.b) != 0) {
			t.Errorf("a buffer of %d came back with length %d", cap(b.b), len(b.b))
		}
	}
}

// TestScansEachByteOnce: the part of a head that was searched is not searched
// again, and lines that were checked stay checked.
func TestScansEachByteOnce(t *testing.T) {
	p := NewPool(Limits{}).Parser()
	var r Request
	in := []byte("GET / HTTP/1.1\r\n" + strings.Repeat("X: 12345678\r\n", 90) + "Y: unfinished")
	for i := range in {
		if _, _, err := p.Next(in[:i+1], &r); err != nil {
			t.Fatal(err)
		}
		if int(p.scan) != i+1 {
			t.Fatalf("after %d bytes %d were searched", i+1, p.scan)
		}
		if len(r.Fields) > 1 {
			t.Fatalf("after %d bytes %d fields were parsed at once", i+1, len(r.Fields))
		}
	}
}

func TestLimitsInEffect(t *testing.T) {
	for _, tt := range []struct {
		name      string
		got, want Limits
	}{
		{"defaults", NewPool(Limits{Line: -1}).Limits(), Limits{8 << 10, 16 << 10, 100, 1 << 20}},
		{"set", NewPool(Limits{1, 2, 3, 4}).Limits(), Limits{1, 2, 3, 4}},
		{"too large", NewPool(Limits{math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt}).Limits(), Limits{64 << 20, 64 << 20, 64 << 20, 64 << 20}},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, tt.got, tt.want)
		}
	}
	if got, want := (Limits{}).Head(), 8<<10+2+16<<10; got != want {
		t.Errorf("Head: got %d, want %d", got, want)
	}
}

func TestAllText(t *testing.T) {
	for size := range 26 {
		for c := range 256 {
			for at := range size {
				b := bytes.Repeat([]byte{'a'}, size)
				b[at] = byte(c)
				want := c == '\t' || c >= ' ' && c != 0x7f
				if got := allText(b); got != want {
					t.Fatalf("byte %#x at %d of %d: got %v, want %v", c, at, size, got, want)
				}
			}
		}
	}
}
