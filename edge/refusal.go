package edge

import (
	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge/http1"
	"github.com/ommer/ommer/edge/ws"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// refusal is an HTTP response that does not depend on the message: mostly why a
// request was refused. All of them are made once and shared.
type refusal struct {
	status int
	kind   string // Content-Type
	body   []byte
	zipped []byte // body as gzip, nil where that does not pay
	fields []byte // preformatted header fields
	why    error  // what the metrics call it when it ends the session
}

const (
	typeJSON = "application/json"
	typeText = "text/plain; charset=utf-8"
)

// anyOrigin lets every page read an answer. There are no cookies, the key is in the
// path, so that any origin may ask that the key's settings do not forbid. What is
// forbidden is refused with 403 and may be read by any page as well: it tells a page
// that has the key nothing that it could not find out, and a developer what to do.
const anyOrigin = "*"

// Fields for browsers, beside the allowed origin. Pages may send what fields they
// like, such as those of tracing; Content-Type is named for browsers that do not know
// the asterisk.
const corsPreflight = "Access-Control-Allow-Methods: POST, OPTIONS\r\n" +
	"Access-Control-Allow-Headers: Content-Type, *\r\n" +
	"Access-Control-Max-Age: 86400\r\n"

// appendCORS appends the fields that let the allowed origin read the answer, if a
// browser asks.
func appendCORS(dst []byte, origin string) []byte {
	if origin == "" {
		return dst
	}
	dst = append(dst, "Access-Control-Allow-Origin: "...)
	dst = append(dst, origin...)
	return append(dst, "\r\nVary: Origin\r\n"...)
}

// maxCORS is room for what appendCORS appends, with some for other fields.
const maxCORS = keys.MaxOrigin + 256

func text(status int, body, fields string) *refusal {
	return &refusal{status: status, kind: typeText, body: []byte(body + "\n"), fields: []byte(fields)}
}

var (
	sayContinue = &refusal{status: 100}
	sayOptions  = &refusal{status: 204, fields: []byte("Allow: POST, OPTIONS\r\n" + corsPreflight)}

	// refuseKey is the same, to the byte, for no key, a malformed, an unknown and
	// a revoked one. RFC 9110 section 15.5.2 wants a challenge; the scheme is ours.
	refuseKey = &refusal{
		status: 401, kind: typeJSON, body: jsonrpc.AppendError(nil, nil, errKey),
		fields: []byte("WWW-Authenticate: ApiKeyInPath\r\n"),
	}
	refuseSettings = &refusal{status: 403, kind: typeJSON, body: jsonrpc.AppendError(nil, nil, errSettings)}

	refuseOverloaded = &refusal{
		status: 429, kind: typeJSON, body: jsonrpc.AppendError(nil, nil, errOverloaded),
		fields: []byte("Retry-After: 1\r\nAccess-Control-Expose-Headers: Retry-After\r\n"),
	}

	refuseNotFound  = text(404, "not found: the service is at /v3/<API_KEY> and /ws/v3/<API_KEY>", "")
	refuseVerb      = text(405, "method not allowed: send JSON-RPC with POST", "Allow: POST, OPTIONS\r\n")
	refuseVerbWS    = text(405, "method not allowed: a WebSocket is opened with GET", "Allow: GET\r\n")
	refuseType      = text(415, "invalid content type, only application/json is supported", "")
	refuseEncoding  = text(415, "unsupported content encoding, only identity is supported", "Accept-Encoding: identity\r\n")
	refuseNoUpgrade = text(426, "this is a WebSocket address: ask for an upgrade, or POST to /v3/<API_KEY>",
		"Upgrade: websocket\r\nConnection: Upgrade\r\n")
)

// corsOpenRPC is for the OpenRPC document: pages of any origin may read it, with no
// key. It is sent whoever asks, so that a cache need not tell origins apart.
const corsOpenRPC = "Access-Control-Allow-Origin: *\r\n"

var (
	// The document changes with the program only, so that it may be kept for a while.
	sayOpenRPC = &refusal{
		status: 200, kind: typeJSON, body: schema.OpenRPC(), zipped: new(zipper).zip(schema.OpenRPC(), nil),
		fields: []byte("Cache-Control: public, max-age=3600\r\nVary: Accept-Encoding\r\n" + corsOpenRPC),
	}
	sayOpenRPCOptions = &refusal{status: 204, fields: []byte("Allow: GET, HEAD, OPTIONS\r\n" + corsOpenRPC +
		"Access-Control-Allow-Methods: GET, HEAD, OPTIONS\r\n" +
		"Access-Control-Allow-Headers: Content-Type, *\r\n" +
		"Access-Control-Max-Age: 86400\r\n")}
	refuseVerbOpenRPC = text(405, "method not allowed: the OpenRPC document is read with GET", "Allow: GET, HEAD, OPTIONS\r\n"+corsOpenRPC)
)

// These end a session by themselves.
var (
	refuseTimeout = &refusal{status: 408, kind: typeText, body: []byte("request not complete in time\n"), why: errSlow}
	refuseCrowded = &refusal{
		status: 429, kind: typeJSON, body: jsonrpc.AppendError(nil, nil, errOverloaded),
		fields: []byte("Retry-After: 1\r\n"), why: errCrowded,
	}
)

// refuseKeyConns answers the handshake of a key that has as many WebSockets as it may.
var refuseKeyConns = &refusal{
	status: 429, kind: typeJSON, body: refuseCrowded.body,
	fields: []byte("Retry-After: 1\r\n"),
}

// byStatus holds what the parser refuses with.
var byStatus = map[int]*refusal{
	400: text(400, "bad request", ""),
	413: text(413, "request body too large", ""),
	414: text(414, "request line too long", ""),
	417: text(417, "only 100-continue is expected", ""),
	431: text(431, "request header too large", ""),
	501: text(501, "not implemented", ""),
	505: text(505, "only HTTP/1.1 is spoken here", ""),
}

// refusalFor is the response with the parser's status.
func refusalFor(status int) *refusal {
	if r := byStatus[status]; r != nil {
		return r
	}
	return byStatus[400]
}

// refusalOfHandshake is the response to a bad WebSocket handshake.
func refusalOfHandshake(r *ws.Refusal) *refusal { return text(r.Status, r.Reason, r.Fields) }

// append appends the response.
func (r *refusal) append(dst []byte, v verdict, date []byte) []byte {
	if r == sayContinue {
		return append(dst, http1.Continue...)
	}
	var room [maxCORS]byte // AppendResponse keeps none of it
	fields, body := append(appendCORS(room[:0], v.origin), r.fields...), r.body
	if v.gzip && r.zipped != nil {
		fields, body = append(fields, fieldGzip...), r.zipped
	}
	return http1.AppendResponse(dst, http1.Response{
		Status: r.status, Date: date, Fields: fields, ContentType: r.kind, Body: body,
		Close: v.close, KeepAlive: v.keepAlive, Head: v.head,
	})
}

// fieldGzip tells of a compressed body. Answers to POST have no Vary beside it: they
// are in no cache, RFC 9110 section 9.3.3.
var fieldGzip = []byte("Content-Encoding: gzip\r\n")

// appendAnswer appends the answer to a message: JSON, which may be compressed, or
// nothing.
func appendAnswer(dst []byte, status int, body []byte, gzip bool, v verdict, date []byte) []byte {
	r := http1.Response{
		Status: status, Date: date, ContentType: typeJSON, Body: body,
		Close: v.close, KeepAlive: v.keepAlive,
	}
	if gzip {
		r.Fields = fieldGzip
	}
	if v.origin != "" {
		var room [maxCORS]byte
		r.Fields = append(appendCORS(room[:0], v.origin), r.Fields...)
	}
	return http1.AppendResponse(dst, r)
}

// statuses are those that the edge answers with, for the metrics.
func statuses() []int {
	all := []int{101, 200, 204, 401, 403, 404, 405, 408, 415, 426, 429}
	for s := range byStatus {
		all = append(all, s)
	}
	return all
}
