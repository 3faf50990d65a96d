package http1

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outcome is one event, or the refusal, as a caller saw it, copied out of the
// parser's memory.
type outcome struct {
	Event  Event
	Why    Reason // 0 if nothing was refused
	Status int
	At     int // offset in the stream behind what was consumed, 0 with an error

	// Of a head.
	Method, Path, Query, Host         string
	Minor                             int
	Close, KeepAlive, Expect, Upgrade bool
	Chunked                           bool
	ContentLength                     int64
	Fields                            []string

	Body string
}

func (o outcome) String() string {
	if o.Why != 0 {
		return o.Why.String()
	}
	return fmt.Sprintf("%d at %d", o.Event, o.At)
}

// drive feeds a stream to a new parser as a session does, one piece at a time,
// and returns what came of it. Memory that the parser may not rely on any more
// is overwritten, and each call gets another Request.
func drive(t testing.TB, pool *Pool, pieces ...[]byte) []outcome {
	t.Helper()
	p := pool.Parser()
	defer p.Release()
	var got []outcome
	var in []byte
	at := 0
	for _, piece := range pieces {
		in = slices.Concat(in, piece)
		for {
			r := Request{ContentLength: 77, Fields: []Field{{Name: []byte("stale")}}}
			n, ev, err := p.Next(in, &r)
			if n < 0 || n > len(in) {
				t.Fatalf("consumed %d of %d bytes", n, len(in))
			}
			consumed := in[:n]
			in = in[n:]
			at += n
			if err == nil && ev == More {
				rest := slices.Clone(in)
				for i := range in {
					in[i] = 0xaa
				}
				in = rest
				break
			}
			got = append(got, see(&r, ev, err, at))
			if err != nil {
				n, ev, again := p.Next(in, &r)
				if n != 0 || ev != More || again != err {
					t.Fatalf("after %v: got %d, %v, %v, want the same refusal again", err, n, ev, again)
				}
				return got
			}
			for i := range consumed {
				consumed[i] = 0xaa
			}
		}
	}
	return got
}

func see(r *Request, ev Event, err *Error, at int) outcome {
	o := outcome{Event: ev, At: at}
	if err != nil {
		o.Why, o.Status, o.At = err.Reason, err.Status, 0
	}
	switch ev {
	case Head:
		o.Method, o.Path, o.Query, o.Host = string(r.Method), string(r.Path), string(r.Query), string(r.Host)
		o.Minor, o.Close, o.KeepAlive, o.Expect, o.Upgrade = r.Minor, r.Close, r.KeepAlive, r.Expect, r.Upgrade
		o.Chunked, o.ContentLength = r.Chunked, r.ContentLength
		for _, f := range r.Fields {
			o.Fields = append(o.Fields, string(f.Name)+": "+string(f.Value))
		}
	case Body:
		o.Body = string(r.Body)
	}
	return o
}

// bytewise cuts a stream into single bytes.
func bytewise(stream []byte) [][]byte {
	return slices.Collect(slices.Chunk(stream, 1))
}

// driveAll feeds the stream whole, a byte at a time and, if it is short, cut in
// two at each position, and returns what all of these agreed on.
func driveAll(t testing.TB, pool *Pool, stream []byte) []outcome {
	t.Helper()
	whole := drive(t, pool, stream)
	if diff := cmp.Diff(whole, drive(t, pool, bytewise(stream)...)); diff != "" {
		t.Fatalf("a byte at a time differs from the whole (-whole +bytes):\n%s\n%q", diff, stream)
	}
	if len(stream) > 4<<10 {
		return whole
	}
	for i := range stream {
		if diff := cmp.Diff(whole, drive(t, pool, stream[:i], stream[i:])); diff != "" {
			t.Fatalf("cut at %d differs from the whole (-whole +cut):\n%s\n%q", i, diff, stream)
		}
	}
	return whole
}
