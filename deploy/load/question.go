package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Question is a lookup.
type Question struct {
	Method string
	Params string // a JSON array
	// Hash is that of the uncle that answers it, 0x and 64 digits. Empty: it is not
	// known, and whatever has the form of an answer is taken for right.
	Hash string
}

// Ids have ten digits, so that a request keeps its length whatever its id is.
const (
	firstID  = 1_000_000_000
	idDigits = 10
)

// questions are what a run asks, and the requests that ask them, as they are sent.
type questions struct {
	all      []Question
	verify   *verifier // nil: answers are not recomputed
	requests []request
}

// request is a message that asks one question, or several in a batch. What is sent
// differs by its ids alone, which are written over the places that it has for them.
type request struct {
	http, ws wire
	first    int // its first question; the others follow it
	calls    int
	batch    bool
}

// wire is a request as it is sent: over HTTP from its last field on, Content-Length,
// over a WebSocket the masked frame.
type wire struct {
	bytes []byte
	ids   []int // where they begin
	start int   // of the masked payload
}

// newQuestions makes requests of batch calls each, 0 for calls that are no batch.
func newQuestions(all []Question, batch int, verify bool) (*questions, error) {
	if len(all) == 0 {
		return nil, errors.New("there are no questions")
	}
	qs := &questions{all: all}
	if verify {
		qs.verify = newVerifier(len(all))
	}
	calls := max(batch, 1)
	for first := 0; first < len(all); first += calls {
		r := request{first: first, calls: calls, batch: batch > 0}
		body, ids, err := qs.body(r)
		if err != nil {
			return nil, err
		}
		length := fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body))
		frame := appendFrame(nil, opText, body)
		r.http = wire{bytes: append(length, body...), start: len(length)}
		r.ws = wire{bytes: frame, start: len(frame) - len(body)}
		for _, at := range ids {
			r.http.ids = append(r.http.ids, r.http.start+at)
			r.ws.ids = append(r.ws.ids, r.ws.start+at)
		}
		qs.requests = append(qs.requests, r)
	}
	return qs, nil
}

// body is a request's JSON, and where its ids stand in it.
func (qs *questions) body(r request) (body []byte, ids []int, err error) {
	if r.batch {
		body = append(body, '[')
	}
	for k := range r.calls {
		if k > 0 {
			body = append(body, ',')
		}
		q := qs.question(r, k)
		if !json.Valid([]byte(q.Params)) {
			return nil, nil, fmt.Errorf("parameters that are no JSON: %.100s", q.Params)
		}
		body = append(body, `{"jsonrpc":"2.0","id":`...)
		ids = append(ids, len(body))
		body = strconv.AppendInt(body, firstID, 10)
		body = fmt.Appendf(body, `,"method":%q,"params":%s}`, q.Method, q.Params)
	}
	if r.batch {
		body = append(body, ']')
	}
	return body, ids, nil
}

// index is which question a call of a request asks.
func (qs *questions) index(r request, call int) int { return (r.first + call) % len(qs.all) }

func (qs *questions) question(r request, call int) Question { return qs.all[qs.index(r, call)] }

// appendTo appends the request with ids from id on.
func (w *wire) appendTo(dst []byte, id uint64, masked bool) []byte {
	from := len(dst)
	dst = append(dst, w.bytes...)
	for k, at := range w.ids {
		n := id + uint64(k)
		for i := at + idDigits - 1; i >= at; i-- {
			c := byte('0' + n%10)
			if n /= 10; masked {
				c ^= frameMask[(i-w.start)%4]
			}
			dst[from+i] = c
		}
	}
	return dst
}
