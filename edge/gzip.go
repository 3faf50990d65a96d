package edge

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/flate"

	"github.com/ommer/ommer/edge/http1"
	"github.com/ommer/ommer/schema"
)

// Responses are compressed for clients that accept gzip. An uncle comes from the
// worker as deflate blocks, made once; here they are joined with the few bytes
// around them, which are not worth compressing, to one gzip member (RFC 1952). That
// costs less than the bytes that it saves; compressing each response would double
// what the edge spends on a request.

const (
	// gzipFrom is the length of a body without any uncle, such as a batch of nulls,
	// from which it is compressed: below, it would all fit into one packet anyway.
	gzipFrom = 1400
	// deflateFrom is the length of a run of bytes from which they are compressed
	// rather than stored, which costs 5 bytes. Between two uncles of a batch there
	// are about 50.
	deflateFrom = 512
	// storedMax is the length of the longest stored block, RFC 1951 section 3.2.4.
	storedMax = 1<<16 - 1
)

// splice is a packed result in a body, in front of the byte at the offset.
type splice struct {
	at     int
	packed schema.Packed
}

// acceptsGzip says whether a response had better be sent as gzip, RFC 9110 section
// 12.5.3: it may be, and nothing says that the client would rather have it as it is.
func acceptsGzip(r *http1.Request) bool {
	const unsaid = -1
	gzip, identity, others := unsaid, 0, 0
	for e := range r.Elements("accept-encoding") {
		coding, params := e, []byte(nil)
		if i := bytes.IndexAny(e, "; \t"); i >= 0 {
			coding, params = e[:i], e[i:]
		}
		switch {
		case bytes.EqualFold(coding, []byte("gzip")), bytes.EqualFold(coding, []byte("x-gzip")):
			gzip = weight(params)
		case bytes.EqualFold(coding, []byte("identity")):
			identity = weight(params)
		case string(coding) == "*":
			others = weight(params)
		}
	}
	if gzip == unsaid {
		gzip = others
	}
	return gzip > 0 && gzip >= identity
}

// weight reads the parameters of a coding, of which there is only q, and returns its
// thousandths (RFC 9110 section 12.4.2): 1000 without one, 0 where it makes no sense.
func weight(params []byte) int {
	params = bytes.Trim(params, "; \t")
	if len(params) == 0 {
		return 1000
	}
	if len(params) < len("q=0") || params[0]|0x20 != 'q' || params[1] != '=' {
		return 0
	}
	whole, fraction, _ := bytes.Cut(params[2:], []byte{'.'})
	if len(whole) != 1 || len(fraction) > 3 {
		return 0
	}
	q := 0
	for i := range 4 {
		digit := byte('0')
		switch {
		case i == 0:
			digit = whole[0]
		case i <= len(fraction):
			digit = fraction[i-1]
		}
		if digit < '0' || digit > '9' {
			return 0
		}
		q = 10*q + int(digit-'0')
	}
	if q > 1000 {
		return 0
	}
	return q
}

// zipper makes gzip members piece by piece. It is used again and again.
type zipper struct {
	out  []byte
	crc  uint32
	size uint32
}

// zip returns the body with its splices as one gzip member, valid until the next
// call.
func (z *zipper) zip(body []byte, splices []splice) []byte {
	// No name, no time, unknown system: RFC 1952 section 2.3.1.
	z.out = append(z.out[:0], 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff)
	z.crc, z.size = 0, 0
	from := 0
	for i := range splices {
		s := &splices[i]
		z.literal(body[from:s.at])
		z.packed(&s.packed)
		from = s.at
	}
	z.literal(body[from:])
	z.out = append(z.out, 3, 0) // an empty last block with fixed codes, RFC 1951 section 3.2.6
	z.out = binary.LittleEndian.AppendUint32(z.out, z.crc)
	z.out = binary.LittleEndian.AppendUint32(z.out, z.size)
	return z.out
}

// Write takes what compresses a literal.
func (z *zipper) Write(p []byte) (int, error) {
	z.out = append(z.out, p...)
	return len(p), nil
}

// literal appends bytes as they are, compressed if there are many of them.
func (z *zipper) literal(p []byte) {
	z.crc = crc32.Update(z.crc, crc32.IEEETable, p)
	z.size += uint32(len(p))
	if len(p) >= deflateFrom {
		_ = flate.StatelessDeflate(z, p, false, nil) // its error would be Write's
		return
	}
	for len(p) > 0 {
		n := min(len(p), storedMax)
		z.out = append(z.out, 0, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		z.out = append(z.out, p[:n]...)
		p = p[n:]
	}
}

// packed appends a packed result.
func (z *zipper) packed(p *schema.Packed) {
	z.out = append(z.out, p.Deflate...)
	z.crc = crcOfBoth(z.crc, p.CRC, p.Size)
	z.size += p.Size
}

// A CRC-32 is a polynomial over GF(2), its highest power in the lowest bit, modulo
// the IEEE polynomial: putting n bytes behind what it was taken of multiplies it
// with x to the 8n. Mark Adler's crc32_combine in zlib is the source of this.

// crcOfBoth is the CRC-32 of a and b behind each other, from those of both and the
// length of b.
func crcOfBoth(a, b, lenB uint32) uint32 {
	shift := uint32(1 << 31) // x to the 0
	for k := 3; lenB > 0; k++ {
		if lenB&1 != 0 {
			shift = timesCRC(powers[k&31], shift)
		}
		lenB >>= 1
	}
	return timesCRC(shift, a) ^ b
}

// timesCRC multiplies two polynomials.
func timesCRC(a, b uint32) (product uint32) {
	for a != 0 {
		if a>>31 != 0 {
			product ^= b
		}
		a <<= 1
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return product
}

// powers holds x to the 2 to the k; it repeats after 32.
var powers = func() (p [32]uint32) {
	p[0] = 1 << 30 // x
	for k := range p[1:] {
		p[k+1] = timesCRC(p[k], p[k])
	}
	return p
}()
