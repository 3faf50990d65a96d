package schema

import (
	"bytes"
	"compress/flate"
	"hash/crc32"
	"sync"
)

// Packed is a result compressed once, for all the HTTP responses that it will be
// part of: an uncle's JSON is mostly an empty bloom and shrinks to a third, which
// costs more than everything else that a lookup does.
type Packed struct {
	// Deflate holds whole blocks of RFC 1951, none of them the last, and ends at a
	// byte's boundary: what comes before and behind it in a stream is free. It is
	// shared like Answer.Result.
	Deflate []byte
	Size    uint32 // bytes of the JSON
	CRC     uint32 // of the JSON: CRC-32 of RFC 1952
}

// IsZero says whether there is nothing.
func (p *Packed) IsZero() bool { return len(p.Deflate) == 0 }

// The rest of a response and the framing of gzip take about 100 bytes: whatever
// saves less than several times that is left as it is.
const (
	packFrom = 512 // bytes of JSON from which packing is tried
	packSave = 256 // bytes that it must save
)

// packLevel is compress/flate's BestSpeed. On uncles it is within 2 % of
// BestCompression, in less than half the time.
const packLevel = flate.BestSpeed

// packer is what packing needs, about a megabyte.
type packer struct {
	to bytes.Buffer
	w  *flate.Writer
}

var packers = sync.Pool{New: func() any {
	p := new(packer)
	p.w, _ = flate.NewWriter(&p.to, packLevel) // its error is about the level
	return p
}}

// Pack compresses a result. It returns nothing where that does not pay.
func Pack(result []byte) Packed {
	if len(result) < packFrom {
		return Packed{}
	}
	p := packers.Get().(*packer)
	defer packers.Put(p)
	p.to.Reset()
	p.w.Reset(&p.to)
	_, _ = p.w.Write(result) // a bytes.Buffer takes everything
	_ = p.w.Flush()          // ends at a byte's boundary, RFC 1951 section 3.2.4
	if p.to.Len()+packSave > len(result) {
		return Packed{}
	}
	return Packed{Deflate: bytes.Clone(p.to.Bytes()), Size: uint32(len(result)), CRC: crc32.ChecksumIEEE(result)}
}
