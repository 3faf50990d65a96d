package http1

// chunked reads a body in the chunked transfer coding, RFC 9112 section 7.1, and
// consumes whatever it is given. Extensions and trailer fields are checked,
// bounded and dropped.
func (p *Parser) chunked(in []byte, r *Request) (int, Event, *Error) {
	limits := &p.pool.limits
	// run is the only data so far. It is copied when more follows it, so a body
	// that came in one chunk and one piece is not.
	var run []byte
	for i := 0; i < len(in); i++ {
		c := in[i]
		switch p.state {
		case inChunkSize:
			switch {
			case classes[c]&isHex != 0:
				p.remain = p.remain<<4 | digit(c)
				if p.got+p.remain > limits.Body {
					return p.fail(refuse(BodyLong))
				}
				if p.width++; p.width > maxChunkDigits {
					return p.fail(refuse(ChunkInvalid))
				}
				continue
			case p.width == 0:
				return p.fail(refuse(ChunkInvalid))
			case c == ';':
				p.width++
				p.state = inChunkExt
			case c == '\r':
				p.state = inChunkSizeLF
			default:
				return p.fail(refuse(ChunkInvalid))
			}
		case inChunkExt:
			switch {
			case c == '\r':
				p.state = inChunkSizeLF
			case classes[c]&isText == 0 || p.width == maxChunkLine:
				return p.fail(refuse(ChunkInvalid))
			default:
				p.width++
			}
		case inChunkSizeLF:
			if c != '\n' {
				return p.fail(refuse(ChunkInvalid))
			}
			if p.overhead = int32(max(0, int(p.overhead+p.width)+2-16-2*p.remain)); p.overhead > maxOverhead {
				return p.fail(refuse(ChunkOverhead))
			}
			p.width = 0
			p.state = inChunkData
			if p.remain == 0 {
				p.state = inTrailer
			}
		case inChunkData:
			data := in[i:min(len(in), i+p.remain)]
			switch {
			case p.discard:
			case p.got == 0:
				run = data
			default:
				p.collect(run, limits.Body)
				p.collect(data, limits.Body)
				run = nil
			}
			p.got += len(data)
			p.remain -= len(data)
			if p.remain == 0 {
				p.state = inChunkDataCR
			}
			i += len(data) - 1
		case inChunkDataCR:
			if c != '\r' {
				return p.fail(refuse(ChunkInvalid))
			}
			p.state = inChunkDataLF
		case inChunkDataLF:
			if c != '\n' {
				return p.fail(refuse(ChunkInvalid))
			}
			p.state = inChunkSize
		default:
			end, why := p.trailer(c)
			if why != 0 {
				return p.fail(refuse(why))
			}
			if end {
				if p.body != nil {
					run = p.body.b
				}
				return p.complete(i+1, run, r)
			}
		}
	}
	p.collect(run, limits.Body)
	return len(in), More, nil
}

// trailer takes one byte of the trailer section, RFC 9112 section 7.1.2, and
// reports whether it was the last.
func (p *Parser) trailer(c byte) (end bool, why Reason) {
	if p.width++; p.width > maxTrailer {
		return false, TrailerLong
	}
	token := classes[c]&isToken != 0
	switch {
	case p.state == inTrailer && c == '\r':
		p.state = inEndLF
	case p.state == inTrailer && token:
		if p.fields++; int(p.fields) > p.pool.limits.Fields {
			return false, FieldsMany
		}
		p.state = inTrailerName
	case p.state == inTrailerName && c == ':':
		p.state = inTrailerValue
	case p.state == inTrailerName && token:
	case p.state == inTrailerValue && c == '\r':
		p.state = inTrailerLF
	case p.state == inTrailerValue && classes[c]&isText != 0:
	case p.state == inTrailerLF && c == '\n':
		p.state = inTrailer
	case p.state == inEndLF && c == '\n':
		return true, 0
	default:
		return false, TrailerInvalid
	}
	return false, 0
}
