package archive

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/golang/snappy"
)

// Limits of what one block may take once decompressed. Blocks before the merge
// had at most 30 million gas, 4 for each byte of call data, so a body stays below
// 8 MiB; proof-of-authority headers carry their signers in extraData.
const (
	maxHeader = 64 << 10
	maxBody   = 16 << 20
	// maxKept bounds the buffers that an inflater keeps for the next block.
	maxKept = 1 << 20
)

// inflater decompresses values in snappy's framing format
// (https://github.com/google/snappy/blob/main/framing_format.txt). One is used by
// one goroutine at a time.
type inflater struct {
	packed []byte
	src    bytes.Reader
	snappy *snappy.Reader
}

// inflaters are reused: a snappy.Reader carries 140 KB of buffers.
type inflaters struct {
	pool sync.Pool
}

func (p *inflaters) get() *inflater {
	if z, ok := p.pool.Get().(*inflater); ok {
		return z
	}
	z := new(inflater)
	z.snappy = snappy.NewReader(&z.src)
	return z
}

func (p *inflaters) put(z *inflater) {
	if cap(z.packed) > maxKept {
		z.packed = nil
	}
	p.pool.Put(z)
}

// inflate returns the decompressed value at v, refusing one over limit bytes. The
// result is the caller's.
func (z *inflater) inflate(r io.ReaderAt, v span, limit int) ([]byte, error) {
	// The framing adds at most a sixth and 10 bytes to each chunk of 64 KiB.
	if most := int64(limit) + int64(limit)/6 + 1024; v.size > most {
		return nil, damaged(v.off, "%d compressed bytes, the limit is %d", v.size, most)
	}
	if int64(cap(z.packed)) < v.size {
		z.packed = make([]byte, v.size)
	}
	z.packed = z.packed[:v.size]
	if err := readFull(r, z.packed, v.off); err != nil {
		return nil, err
	}
	z.src.Reset(z.packed)
	z.snappy.Reset(&z.src)

	// Grow with what was really decompressed, never by what the value claims.
	out := make([]byte, 0, min(2*v.size+64, int64(limit)+1))
	for {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, err := z.snappy.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		switch {
		case len(out) > limit:
			return nil, damaged(v.off, "over %d bytes once decompressed", limit)
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, damaged(v.off, "%v", err)
		}
	}
}
