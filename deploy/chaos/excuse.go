package main

import (
	"strings"

	"github.com/ommer/ommer/deploy/load"
)

// excuse is a failure that a fault excuses.
type excuse struct {
	failures []string // beginnings of their kinds
	held     bool     // only of questions that were with the edge that the fault happened to
	why      string
}

// Failures of a connection, as package load calls them.
var (
	broken   = []string{load.KindClosed, load.KindReset, load.KindRefused, load.KindConnect}
	farewell = []string{load.KindClosed, load.KindReset, load.KindRefused, "closed with 1001", "handshake status"}
	silence  = []string{load.KindTimeout, load.KindConnect, "JSON-RPC error -32002"}
	gaveUp   = []string{"JSON-RPC error -32002", "JSON-RPC error -32603", "JSON-RPC error -32005"}
)

// Excuses. What is not in the row of a fault is a failure of ours.
var (
	diedWithIt = excuse{broken, true, "a client cannot know whether a process that is gone has answered, and nobody else can answer on its connection"}
	crossed    = excuse{farewell, true, "a question and the close of its connection can cross (RFC 9112 9.3.1, RFC 6455 7.1): it is not processed, and the client may ask again"}
	stalled    = excuse{silence, true, "a process that does not run, and that nobody ended, leaves its connections open, and the time of its questions passes"}
	isolated   = excuse{gaveUp, true, "an edge that reaches no server can ask nobody: it says so at /readyz, but connections that are open stay"}
	noSource   = excuse{gaveUp, false, "what no worker has in its cache only an upstream can answer"}
)

// excused says whether one of the faults excuses what came of a question, and what to
// call that.
func excused(faults []*fault, x sample) (label string, ok bool) {
	label = x.failure.Kind
	for _, f := range faults {
		held := f.target.role == edge && f.target.number == x.edge
		for _, e := range f.kind.excuses {
			if e.held && !held {
				continue
			}
			for _, beginning := range e.failures {
				if strings.HasPrefix(label, beginning) {
					if e.held {
						label += ", held by " + f.target.name
					}
					return label, true
				}
			}
		}
	}
	return label, false
}
