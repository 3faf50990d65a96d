package schematest

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/ommer/ommer/schema"
)

// Unpack returns the JSON that p holds, or what is wrong with p.
func Unpack(p schema.Packed) ([]byte, error) {
	// The blocks have an end, but none of them is the last.
	result, err := io.ReadAll(flate.NewReader(bytes.NewReader(p.Deflate)))
	switch {
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("packed result: %w, want blocks without a last one", err)
	case len(result) != int(p.Size) || crc32.ChecksumIEEE(result) != p.CRC:
		return nil, fmt.Errorf("packed result: %d bytes with CRC %#x, want %d and %#x", len(result), crc32.ChecksumIEEE(result), p.Size, p.CRC)
	}
	return result, nil
}

// Result returns the JSON of an answer, in whichever form it came.
func Result(a schema.Answer) ([]byte, error) {
	switch {
	case a.Packed.IsZero():
		return a.Result, nil
	case a.Result != nil:
		return nil, errors.New("an answer has both of its forms")
	default:
		return Unpack(a.Packed)
	}
}
