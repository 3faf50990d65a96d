package http1

// Defaults of Limits.
const (
	DefaultLine   = 8 << 10
	DefaultHeader = 16 << 10
	DefaultFields = 100
	DefaultBody   = 1 << 20
)

// What is bounded without being configurable.
const (
	// maxMethod is the length of the longest method that is read to its end. A
	// longer one is answered with 501 (RFC 9112 section 3); the longest that is
	// registered has 17 bytes.
	maxMethod = 32
	// maxChunkLine bounds the size of a chunk with its extensions, without CRLF.
	maxChunkLine = 256
	// maxChunkDigits bounds the leading zeros of a chunk's size.
	maxChunkDigits = 16
	// maxOverhead bounds what chunk lines may cost beyond a fair share of the
	// data: 16 bytes for a chunk and twice its length. net/http's figures
	// (net/http/internal/chunked.go).
	maxOverhead = 16 << 10
	// maxTrailer bounds the trailer section with its last CRLF; it is net/http's
	// limit too, there the size of a buffer.
	maxTrailer = 4 << 10
	// maxLimit is the most that a limit can be set to. It keeps positions within
	// 32 bits and sums of sizes from overflowing.
	maxLimit = 64 << 20
)

// Limits bound what one request may bring. A value that is not positive means
// the default, one above 64 Mi means 64 Mi.
type Limits struct {
	// Line is the length of the longest request line in bytes, without CRLF;
	// beyond it the answer is 414. Default 8 KiB.
	Line int
	// Header is the size of the largest header section in bytes, from behind the
	// request line to behind the empty line; beyond it the answer is 431.
	// Default 16 KiB.
	Header int
	// Fields is the largest number of header fields, and of trailer fields;
	// beyond it the answer is 431. Default 100.
	Fields int
	// Body is the size of the largest body in bytes, after decoding; beyond it
	// the answer is 413. Default 1 MiB.
	Body int
}

// Head is the most bytes that a caller has to keep of a head that is not complete.
func (l Limits) Head() int {
	l = l.effective()
	return l.Line + len("\r\n") + l.Header
}

// effective is l with its defaults filled in.
func (l Limits) effective() Limits {
	set := func(v *int, byDefault int) {
		if *v <= 0 {
			*v = byDefault
		}
		*v = min(*v, maxLimit)
	}
	set(&l.Line, DefaultLine)
	set(&l.Header, DefaultHeader)
	set(&l.Fields, DefaultFields)
	set(&l.Body, DefaultBody)
	return l
}
