package actor

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Info is what can be seen of an actor from outside. As JSON it is one entry of
// what System.ServeHTTP answers.
type Info struct {
	Name string `json:"name"`
	// State is running (it has work), idle, restarting (it crashed and pauses),
	// stopping (it refuses new mail) or stopped.
	State string `json:"state"`
	// Mailbox is how many messages wait, MailboxCap how many places there are,
	// Reserved how many of them are for TellReserved alone.
	Mailbox    int `json:"mailbox"`
	MailboxCap int `json:"mailbox_cap"`
	Reserved   int `json:"reserved"`
	// Received counts the messages taken out of the mailbox, Refused those that
	// found it full.
	Received uint64 `json:"received"`
	Refused  uint64 `json:"refused"`
	// Restarts counts the starts that worked after a crash.
	Restarts uint64 `json:"restarts"`
	// LastFailure is the reason of the last crash, empty if there was none.
	LastFailure   string      `json:"last_failure,omitempty"`
	LastFailureAt time.Time   `json:"last_failure_at,omitzero"`
	DeadLetters   DeadLetters `json:"dead_letters"`
}

// DeadLetters counts the messages that were taken and not handled to their end.
type DeadLetters struct {
	Panic uint64 `json:"panic"` // the actor panicked while receiving it
	Stop  uint64 `json:"stop"`  // discarded at the stop
}

// Total is the sum of all reasons.
func (d DeadLetters) Total() uint64 { return d.Panic + d.Stop }

func (p *proc) info() Info {
	mail := p.typed.mail()
	i := Info{
		Name:       p.name,
		State:      "idle",
		Mailbox:    mail.length,
		MailboxCap: mail.limit + mail.reserved,
		Reserved:   mail.reserved,
		Received:   mail.received,
		Refused:    mail.refused,
	}
	switch st := status(p.status.Load()); {
	case st == stopped:
		i.State = "stopped"
	case mail.closed:
		i.State = "stopping"
	case st == restarting:
		i.State = "restarting"
	case p.cell.Busy():
		i.State = "running"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i.Restarts = p.restarts
	i.DeadLetters = DeadLetters{Panic: p.panicked, Stop: p.discarded}
	if p.last != nil {
		i.LastFailure, i.LastFailureAt = p.last.Error(), p.lastAt
	}
	return i
}

// Actors returns what can be seen of the actors that are alive, in the order of
// spawning.
func (s *System) Actors() []Info {
	s.mu.Lock()
	procs := slices.Clone(s.procs)
	s.mu.Unlock()
	infos := make([]Info, len(procs))
	for i, p := range procs {
		infos[i] = p.info()
	}
	return infos
}

// ServeHTTP answers GET with Actors as a JSON array. It is for the operator's
// listener: the reasons of failures are in it.
func (s *System) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(s.Actors()); err != nil {
		// Infos can always be encoded: the client has gone away.
		s.log.Debug("actors not sent", "error", err)
	}
}
