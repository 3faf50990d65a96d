package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Load is what a worker says of itself on LoadSubject, LoadInterval apart and at once
// when its State changes: edges find workers by it and choose among them, operators
// watch it (nats sub 'ommer.load.>'). It is JSON, so that later versions can say more.
type Load struct {
	Worker   string `json:"worker"`
	Instance string `json:"instance"` // another one after each start
	Network  string `json:"network"`
	Zone     string `json:"zone,omitempty"` // edges prefer the workers of their own
	State    State  `json:"state"`
	// Home says that this announcement came over the link on which the worker's own
	// subjects are subscribed: questions take the same way back.
	Home bool `json:"home"`
	// Epoch grows whenever questions on their way to the worker, or its answers, may
	// have been lost with a connection: who waits for some asks again.
	Epoch uint64 `json:"epoch"`
	// InFlight is how many questions it has, and MaxInFlight how many it takes.
	InFlight    int `json:"in_flight"`
	MaxInFlight int `json:"max_in_flight"`
	// ServiceTime is how long it lately took from a question to its answer, as an
	// exponentially weighted mean. 0 means that it has answered none.
	ServiceTime time.Duration `json:"service_ns"`
	Answered    uint64        `json:"answered"` // since its start
	Version     string        `json:"version,omitempty"`
}

// State says whether a worker should be asked.
type State string

// The states of a worker.
const (
	Ready   State = "ready"
	Unready State = "unready" // it has no node to ask: others answer better
	Leaving State = "leaving" // it takes what is on its way and nothing more
)

// LoadInterval is the time between two announcements of a worker.
const LoadInterval = 200 * time.Millisecond

// maxLoad bounds what is read as an announcement, in bytes.
const maxLoad = 4096

var errLoad = errors.New("not the announcement of a worker")

// loadSubject is where a worker announces its load.
func loadSubject(worker string) string { return loadPrefix + worker }

const (
	loadPrefix   = "ommer.load."
	loadSubjects = loadPrefix + "*"
)

// parseLoad reads an announcement made on a subject. A worker can speak only for
// itself: the subject is what its user may publish to.
func parseLoad(subject string, b []byte) (Load, error) {
	var l Load
	if len(b) > maxLoad {
		return l, errLoad
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("%w: %w", errLoad, err)
	}
	if subject != loadSubject(l.Worker) || checkToken("", l.Worker) != nil || checkToken("", l.Network) != nil ||
		l.Zone != "" && checkToken("", l.Zone) != nil ||
		l.InFlight < 0 || l.MaxInFlight < 0 || l.ServiceTime < 0 {
		return l, errLoad
	}
	switch l.State {
	case Ready, Unready, Leaving:
		return l, nil
	}
	return l, fmt.Errorf("%w: state %q", errLoad, l.State)
}
