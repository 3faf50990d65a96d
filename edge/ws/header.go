package ws

import "encoding/binary"

// maxClientHeader is the length of the longest header of a client: two bytes,
// eight of length, four of mask.
const maxClientHeader = 2 + 8 + maskBytes

// header takes a frame's header from the start of in, which may hold only a part
// of it, and returns how many bytes it used. When it is complete it has passed
// all the rules and the frame is open. Each part is judged as soon as it is there.
//
// The header is read by hand: a reader of headers from an io.Reader, as libraries
// have them, takes longer without judging as much, allocates, and cannot be
// resumed within a header (BenchmarkHeader).
func (r *Reader) header(in []byte) (used int, err *Error) {
	h := in
	if r.held > 0 {
		// What is copied beyond the header's end is not counted as used.
		h = r.head[:int(r.held)+copy(r.head[r.held:], in)]
	}
	if len(h) < 2 {
		return r.hold(in, h), nil
	}
	if err = r.checkStart(h[0], h[1]); err != nil {
		return 0, err
	}
	op := Op(h[0] & bitsOp)
	size, length, err := lengthOf(h)
	if err != nil {
		return 0, err
	}
	// What is collected is within the limit, so this cannot wrap around.
	if !op.control() && length > uint64(r.pool.message-r.collected()) {
		return 0, errTooBig
	}
	if len(h) < size {
		return r.hold(in, h), nil
	}
	if op == OpText || op == OpBinary {
		r.message = op
	}
	r.op, r.fin, r.open = op, h[0]&bitFin != 0, true
	r.left = int(length)
	r.mask = [4]byte(h[size-maskBytes:])
	used = size - int(r.held)
	r.held = 0
	return used, nil
}

// hold keeps h, a header that is not complete, of which in is the latest part. It
// returns how much of in is used: all.
func (r *Reader) hold(in, h []byte) int {
	if r.held == 0 {
		copy(r.head[:], h)
	}
	r.held = uint8(len(h))
	return len(in)
}

// lengthOf returns the size of the header that begins with h, two bytes at least,
// and the length that it announces: 0 as long as that is not complete.
func lengthOf(h []byte) (size int, length uint64, err *Error) {
	switch short := h[1] & bitsLength; short {
	case lengthIn2:
		if size = 2 + 2 + maskBytes; len(h) < 2+2 {
			return size, 0, nil
		}
		if length = uint64(binary.BigEndian.Uint16(h[2:])); length < lengthIn2 {
			return 0, 0, errLengthEncoding
		}
	case lengthIn8:
		if size = maxClientHeader; len(h) < 2+8 {
			return size, 0, nil
		}
		if length = binary.BigEndian.Uint64(h[2:]); length <= 0xFFFF {
			return 0, 0, errLengthEncoding
		}
		if length>>63 != 0 {
			return 0, 0, errLengthSign
		}
	default:
		size, length = 2+maskBytes, uint64(short)
	}
	return size, length, nil
}

// checkStart judges the first two bytes of a header (RFC 6455 sections 5.2, 5.4,
// 5.5). They decide all but the length, so that a client that is wrong is refused
// without waiting for more of it.
func (r *Reader) checkStart(first, second byte) *Error {
	if first&bitsRsv != 0 {
		return errReservedBits
	}
	if second&bitMask == 0 {
		return errUnmasked
	}
	switch Op(first & bitsOp) {
	case OpText, OpBinary:
		if r.message != 0 {
			return errMessageOpen
		}
	case opContinuation:
		if r.message == 0 {
			return errNoMessage
		}
	case OpPing, OpPong, OpClose:
		if first&bitFin == 0 {
			return errControlParted
		}
		if second&bitsLength > maxControl {
			return errControlLong
		}
	default:
		return errOpcode
	}
	return nil
}
