package edge

import (
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
	fields []byte // preformatted header fields
	why    error  // what the metrics call it when it ends the session
}

const (
	typeJSON = "application/json"
	typeText = "text/plain; charset=utf-8"
)

// Fields for browsers. There are no cookies, the key is in the path, so that any
// origin may ask.
const (
	corsAnswer    = "Access-Control-Allow-Origin: *\r\nVary: Origin\r\n"
	corsPreflight = corsAnswer +
		"Access-Control-Allow-Methods: POST, OPTIONS\r\n" +
		"Access-Control-Allow-Headers: Content-Type\r\n" +
		"Access-Control-Max-Age: 86400\r\n"
)

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
	refuseNotFound  = text(404, "not found: the service is at /v3/<API_KEY> and /ws/v3/<API_KEY>", "")
	refuseVerb      = text(405, "method not allowed: send JSON-RPC with POST", "Allow: POST, OPTIONS\r\n")
	refuseVerbWS    = text(405, "method not allowed: a WebSocket is opened with GET", "Allow: GET\r\n")
	refuseType      = text(415, "invalid content type, only application/json is supported", "")
	refuseEncoding  = text(415, "unsupported content encoding, only identity is supported", "Accept-Encoding: identity\r\n")
	refuseNoUpgrade = text(426, "this is a WebSocket address: ask for an upgrade, or POST to /v3/<API_KEY>",
		"Upgrade: websocket\r\nConnection: Upgrade\r\n")
)

// These end a session by themselves.
var (
	refuseTimeout = &refusal{status: 408, kind: typeText, body: []byte("request not complete in time\n"), why: errSlow}
	refuseCrowded = &refusal{
		status: 429, kind: typeJSON, body: jsonrpc.AppendError(nil, nil, (&schema.Error{Code: schema.Overloaded}).Reply()),
		fields: []byte("Retry-After: 1\r\n"), why: errCrowded,
	}
)

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
	fields := r.fields
	if v.origin && r.status != sayOptions.status {
		fields = append([]byte(corsAnswer), fields...) // so that a page may read why
	}
	return http1.AppendResponse(dst, http1.Response{
		Status: r.status, Date: date, Fields: fields, ContentType: r.kind, Body: r.body,
		Close: v.close, KeepAlive: v.keepAlive, Head: v.head,
	})
}

var corsFields = []byte(corsAnswer)

// appendOK appends a 200 with a JSON body, which may be empty.
func appendOK(dst, body []byte, v verdict, date []byte) []byte {
	r := http1.Response{
		Status: 200, Date: date, ContentType: typeJSON, Body: body,
		Close: v.close, KeepAlive: v.keepAlive,
	}
	if v.origin {
		r.Fields = corsFields
	}
	return http1.AppendResponse(dst, r)
}

// statuses are those that the edge answers with, for the metrics.
func statuses() []int {
	all := []int{101, 200, 204, 401, 404, 405, 408, 415, 426, 429}
	for s := range byStatus {
		all = append(all, s)
	}
	return all
}
