package actor

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// SystemInfo is what can be seen of a system from outside: the supervisor and,
// below it, the actors that it restarts. Page answers it as JSON.
type SystemInfo struct {
	Name  string `json:"name"`
	State string `json:"state"` // running, stopping or stopped
	// Runners is how many goroutines run the actors, Queued how many actors have
	// work and wait for one.
	Runners int    `json:"runners"`
	Queued  int    `json:"queued"`
	Actors  []Info `json:"actors"` // those that are alive, in the order of spawning
}

// Info is what can be seen of an actor from outside.
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
	// Crashes counts the panics and the starts that failed after one, Restarts the
	// starts that worked.
	Crashes  uint64 `json:"crashes"`
	Restarts uint64 `json:"restarts"`
	// LastFailure is the reason of the last crash, empty if there was none: one
	// line, cut where it is very long. The log has all of it, and the stack.
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
	i.Crashes, i.Restarts = p.crashes, p.restarts
	i.LastFailure, i.LastFailureAt = p.last, p.lastAt
	i.DeadLetters = DeadLetters{Panic: p.panicked, Stop: p.discarded}
	return i
}

// maxReason bounds LastFailure, in bytes: what somebody panicked with may be of
// any size.
const maxReason = 256

// reason returns an error as one line of bounded length.
func reason(err error) string {
	const more = "..."
	s := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, err.Error())
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason-len(more)], "") + more
	}
	return s
}

// Info returns what can be seen of the system and of its actors.
func (s *System) Info() SystemInfo {
	i := SystemInfo{Name: s.name, State: "running", Runners: s.pool.Size(), Queued: s.pool.Queued(), Actors: s.Actors()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		i.State = "stopping"
		select {
		case <-s.done:
			i.State = "stopped"
		default:
		}
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
