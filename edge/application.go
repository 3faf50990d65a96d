package edge

import (
	"github.com/ommer/ommer/edge/http1"
	"github.com/ommer/ommer/edge/ws"
)

// application is what a node does with what clients send, once a session has made
// requests and messages of it; how an answer is sent, in which order and within
// which limits is the session's. All methods are called by whoever runs the session,
// and what they are given is good until they return.
type application interface {
	// judge decides from a request's header. upgrade says that the request may open
	// a WebSocket, if its handshake is a good one; the verdict's key is then its key.
	judge(s *session, r *http1.Request) (v verdict, upgrade bool)
	// request takes a request that judge has not refused. Its body is in w.request.
	// The answer is an exchange in the session's queue.
	request(s *session, v verdict, w *scratch)
	// message takes a message of a WebSocket; kind is ws.Text or ws.Binary.
	message(s *session, kind ws.Event, payload []byte, w *scratch)
	// recheck ends a WebSocket that could not be opened now.
	recheck(s *session, w *scratch)
}
