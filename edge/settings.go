package edge

import (
	"fmt"
	"time"

	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// setting is what of a key's settings has refused something, as metrics name it.
type setting string

// The settings.
const (
	byNetwork setting = "network"
	byOrigin  setting = "origin"
	byMethod  setting = "method"
	byRate    setting = "rate"
	byConns   setting = "max-conns"
)

// admits says whether a key is good on a network and for an origin, nil where there is
// none: then it is refused by nothing, and allowed is the origin that may read the answer.
func admits(key *keys.Entry, on *network, origin []byte) (allowed string, refused setting) {
	if !key.AllowsNetwork(on.name) {
		return "", byNetwork
	}
	allowed, ok := key.AllowsOrigin(origin)
	if !ok {
		return "", byOrigin
	}
	return allowed, ""
}

// opens counts a WebSocket of a key in, if the key may have one more. An application
// without keys has as many as it likes.
func (n *node) opens(key *keys.Entry) bool {
	return key == nil || key.Open(n.cfg.Limits.ConnsPerKey)
}

// backoff is how many whole seconds a key has to wait that is over its rate.
func backoff(over keys.Overrun) int64 {
	return int64((over.Wait + time.Second - 1) / time.Second)
}

// errRate is what the caller is told who is over the rate of the key.
func errRate(over keys.Overrun) *jsonrpc.Error {
	return &jsonrpc.Error{
		Code: schema.CodeLimit, Message: "rate limit exceeded",
		Data: fmt.Appendf(nil, `{"allowed_rps":%d,"backoff_seconds":%d}`, over.Rate, backoff(over)),
	}
}

// refusalForRate is the response to what is over the rate of its key. Its body was
// not looked at.
func refusalForRate(over keys.Overrun) *refusal {
	return &refusal{
		status: 429, kind: typeJSON, body: jsonrpc.AppendError(nil, nil, errRate(over)),
		fields: fmt.Appendf(nil, "Retry-After: %d\r\nAccess-Control-Expose-Headers: Retry-After\r\n", backoff(over)),
	}
}
