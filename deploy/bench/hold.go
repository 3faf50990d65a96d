package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/deploy/load"
)

// holdCommand is the argument that makes this program the one that holds idle
// connections.
const holdCommand = "hold-idle-connections"

// holding is what that process is told on its standard input.
type holding struct {
	Endpoint  endpoint
	Questions []question
	Conns     int
	Sources   []net.IP // addresses to connect from, in turn; empty for any
	Pings     bool     // of WebSockets: answer those that come while one is idle
}

// held is a line that the process writes. It writes one in each second while it
// opens connections, one when all are open and have had their exchange, and then
// one for each holdAsk or holdCount that it reads.
type held struct {
	Open     int
	All      bool   // nothing is left to open
	Answered int    // questions, by the right uncle, since the connections were opened
	Failed   int    // questions
	Pings    int    // answered so far
	Problem  string // the first of what failed
}

// What the process does when it is told to.
const (
	holdAsk   = "ask"   // asks one question on every connection
	holdCount = "count" // nothing
)

// holdReport is how often the process says how many connections are open.
const holdReport = time.Second

// hold opens the connections, makes one exchange on each, and keeps them until its
// input ends.
func hold(in io.Reader, out io.Writer) (err error) {
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	h := holder{out: enc}
	if err = dec.Decode(&h.what); err != nil {
		return fmt.Errorf("what to hold: %w", err)
	}
	defer func() { err = errors.Join(err, h.close()) }()
	if err = h.open(); err != nil {
		return err
	}
	debug.FreeOSMemory() // what handshakes needed, so that there is room for the others
	state := held{Open: len(h.conns), All: true}
	for {
		h.count(&state)
		if err = enc.Encode(state); err != nil {
			return err
		}
		var command string
		if err = dec.Decode(&command); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("what to do: %w", err)
		}
		if command == holdAsk {
			h.askAll(&state)
		}
	}
}

// holder is the connections that the process holds.
type holder struct {
	what  holding
	out   *json.Encoder
	conns []*load.Conn
	watch *watch // nil if no pings are answered
}

// open opens the connections and says how far it is.
func (h *holder) open() (err error) {
	if h.what.Pings {
		if h.watch, err = newWatch(); err != nil {
			return err
		}
	}
	var opened atomic.Int64
	ended := make(chan struct{})
	var reporting sync.WaitGroup
	var reported error
	reporting.Go(func() {
		tick := time.NewTicker(holdReport)
		defer tick.Stop()
		for reported == nil {
			select {
			case <-tick.C:
				reported = h.out.Encode(held{Open: int(opened.Load())})
			case <-ended:
				return
			}
		}
	})
	defer func() {
		close(ended)
		reporting.Wait()
		err = errors.Join(err, reported)
	}()
	d, err := newDialer(h.what.Endpoint, h.what.Questions, h.what.Sources...)
	if err != nil {
		return err
	}
	h.conns, err = d.DialAll(context.Background(), h.what.Conns, func(c *load.Conn) error {
		opened.Add(1)
		if h.watch == nil {
			return nil
		}
		return h.watch.add(c)
	})
	return err
}

// part is the size of part i when n things are divided into parts that differ by
// one at most.
func part(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }

// askingAtOnce is on how many connections questions are asked at a time.
const askingAtOnce = 32

// askAll asks a question on every connection, each another one than its neighbours and
// than when it was opened.
func (h *holder) askAll(to *held) {
	if h.watch != nil {
		h.watch.Lock()
		defer h.watch.Unlock()
	}
	var next atomic.Int64
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range min(len(h.conns), askingAtOnce) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(h.conns); i = int(next.Add(1)) - 1 {
				_, err := h.conns[i].Ask((i + 1) % len(h.what.Questions))
				mu.Lock()
				if err == nil {
					to.Answered++
				} else {
					to.fail(fmt.Errorf("connection %d of %d: %w", i+1, len(h.conns), err))
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
}

func (h *held) fail(err error) {
	h.Failed++
	if h.Problem == "" {
		h.Problem = err.Error()
	}
}

// count says how many pings were answered.
func (h *holder) count(to *held) {
	if h.watch == nil {
		return
	}
	var lost error
	if to.Pings, lost = h.watch.answered(); lost != nil && to.Problem == "" {
		to.Problem = lost.Error()
	}
}

func (h *holder) close() error {
	var err error
	if h.watch != nil {
		err = h.watch.stop()
	}
	return errors.Join(err, load.CloseAll(h.conns))
}
