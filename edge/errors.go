package edge

import (
	"errors"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// Why a session ended, for metrics and the debug log.
var (
	errIdle     = errors.New("idle")
	errSlow     = errors.New("request not complete in time")
	errCrowded  = errors.New("too many messages in part")
	errStalled  = errors.New("client does not read")
	errSilent   = errors.New("no answer to ping")
	errLeaving  = errors.New("node is stopping")
	errRevoked  = errors.New("key revoked")
	errRejected = errors.New("key not good here any more")
	errProtocol = errors.New("protocol error")
	errClosing  = errors.New("client closed the WebSocket")
	errPanicked = errors.New("internal failure")
	errEnded    = errors.New("client hung up")
	errSpared   = errors.New("idle while the node is overloaded")
	errAsked    = errors.New("answered for the last time")
)

// What callers are told. Shared; not to be changed.
var (
	errKey        = &jsonrpc.Error{Code: schema.CodeTimeout, Message: "invalid API key"}
	errSettings   = &jsonrpc.Error{Code: schema.CodeTimeout, Message: "rejected by the API key's settings"}
	errInFlight   = &jsonrpc.Error{Code: schema.CodeLimit, Message: "too many requests in flight"}
	errOverloaded = (&schema.Error{Code: schema.Overloaded}).Reply()
	errTooLarge   = &jsonrpc.Error{Code: schema.CodeTooLarge, Message: "response too large"}
)
