package bus

import (
	"sync"
	"time"

	"github.com/ommer/ommer/schema"
)

const (
	// maxLetter is how many bytes of answers go into one message, or as many as one
	// answer takes. An edge keeps a message for as long as one of its answers waits
	// for a client.
	maxLetter = 32 << 10
	// maxWait is how long an answer waits for the others to the same message, when
	// these have to be looked for. It is a fraction of what asking a node takes.
	maxWait = 500 * time.Microsecond
)

// letter collects the answers to the questions of one message and sends them
// together: as soon as the last one is there, and before that when maxWait has passed
// or maxLetter bytes are there. It is used again once all were sent.
type letter struct {
	server *Server
	to     string      // reply subject
	via    *serverLink // that the questions came over

	mu     sync.Mutex
	bundle schema.Bundle
	open   int  // questions without an answer, and one more while they are being read
	unsent int  // questions in flight whose answers are in bundle
	queued bool // among those that are sent when maxWait has passed
}

// expect counts a question in.
func (l *letter) expect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
}

// answer takes the answer to a question that was expected; asked says whether it
// counts as in flight.
func (l *letter) answer(id uint64, a schema.Answer, asked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bundle.AddReply(id, a)
	l.settle(asked)
}

// refuse answers a question that is not asked.
func (l *letter) refuse(id uint64, e *schema.Error) {
	l.expect()
	l.answer(id, schema.Answer{Err: e}, false)
}

// skip takes note that a question gets no answer.
func (l *letter) skip(asked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(asked)
}

// settle is the end of a question. It may be the letter's as well: nobody touches it
// after that.
func (l *letter) settle(asked bool) {
	if asked {
		l.unsent++
	}
	l.open--
	switch {
	case l.open == 0 || l.bundle.Size() >= maxLetter:
		l.send()
	case !l.queued && (l.bundle.Frames() > 0 || l.unsent > 0):
		l.queued = true
		l.server.post.add(l)
	}
	l.rest()
}

// send publishes what there is.
func (l *letter) send() {
	if l.bundle.Frames() > 0 {
		l.server.metrics.messages.Inc()
		l.server.publish(l.via, l.to, l.bundle.Message())
		l.bundle.Reset(2 * maxLetter)
	}
	l.server.release(l.unsent)
	l.unsent = 0
}

// rest gives the letter back when nothing more will come of it.
func (l *letter) rest() {
	if l.open == 0 && !l.queued {
		l.to, l.via = "", nil
		l.server.letters.Put(l)
	}
}

// collected is told that maxWait has passed.
func (l *letter) collected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued = false
	l.send()
	l.rest()
}

// post is the letters that wait to be sent.
type post struct {
	mu      sync.Mutex
	letters []*letter
	spare   []*letter
	timer   *time.Timer // armed while letters is not empty
}

func (p *post) init() {
	p.timer = time.AfterFunc(time.Hour, p.collect)
	p.timer.Stop()
}

func (p *post) add(l *letter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.letters = append(p.letters, l)
	if len(p.letters) == 1 {
		p.timer.Reset(maxWait)
	}
}

// collect sends all. Two of them may run at a time, when one takes long.
func (p *post) collect() {
	p.mu.Lock()
	out := p.letters
	p.letters, p.spare = p.spare, nil
	p.mu.Unlock()
	for i, l := range out {
		l.collected()
		out[i] = nil
	}
	p.mu.Lock()
	p.spare = out[:0]
	p.mu.Unlock()
}
