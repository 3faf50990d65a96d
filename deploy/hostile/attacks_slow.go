package main

import (
	"bytes"
	"fmt"
	"strings"
)

// slowAttacks keep the edge waiting.
func slowAttacks() []attack {
	return []attack{
		{
			name: "header, a byte now and then", enemies: 200, growth: 16,
			conduct: func(e *enemy) {
				e.drip(fmt.Appendf(nil, "POST /v3/%s HTTP/1.1\r\nHost: localhost\r\nX-A: %s", e.army.Site.Key, strings.Repeat("a", 1000)), e.army.Unit/5)
			},
			ends: []string{"408"}, why: "--timeout-header counts from the first byte, whatever follows",
		},
		{
			name: "body, a byte now and then", enemies: 200, growth: 16,
			conduct: func(e *enemy) {
				_ = e.send(e.army.head(1000)) && e.drip(bytes.Repeat([]byte("["), 1000), e.army.Unit/5)
			},
			ends: []string{"408"}, why: "--timeout-body counts from the end of the header",
		},
		{
			name: "bodies that stop short of their last byte", enemies: 100, growth: 250,
			conduct: func(e *enemy) {
				_ = e.send(e.army.head(1<<20)) && e.send(bytes.Repeat([]byte(" "), 1<<20-1))
			},
			ends: []string{"408"}, why: "--timeout-body; a buffer is at most twice what arrived, 100 MiB here",
		},
		{
			name: "valid requests byte by byte", enemies: 32, growth: 16,
			conduct: func(e *enemy) {
				for e.turn() && e.drip(e.army.request(lookup), e.army.Unit/4000) {
				}
			},
			rate: 100, answers: []string{"200"}, ends: []string{endOpen}, why: "nothing is wrong with them",
		},
		{
			name: "body that 100-continue asked for", enemies: 100, growth: 16, only: overTCP,
			conduct: func(e *enemy) {
				e.send(bytes.Replace(e.army.head(1000), []byte("\r\n\r\n"), []byte("\r\nExpect: 100-continue\r\n\r\n"), 1))
			},
			answers: []string{"100"}, ends: []string{"408"}, why: "--timeout-body, though the client waits to be asked",
		},
		{
			name: "half a WebSocket message", enemies: 100, growth: 64,
			conduct: func(e *enemy) {
				_ = e.upgrade() && e.send(frame(opText|fin, bytes.Repeat([]byte(" "), 100_000))[:50_000])
			},
			ends: []string{"close 1008"}, why: "--timeout-body holds for a message, from its first byte",
		},
		{
			name: "message in fragments of a byte", enemies: 16, growth: 16,
			conduct: func(e *enemy) {
				if e.upgrade() && e.send(frame(opText, []byte(" "))) {
					e.flood(frame(opContinuation, []byte(" ")))
				}
			},
			rate: 4000, ends: []string{"close 1008"}, why: "the same, and each fragment is copied at once, so that none is held by itself",
		},
		{
			name: "message of empty fragments without end", enemies: 16, growth: 16,
			conduct: func(e *enemy) {
				if e.upgrade() && e.send(frame(opText, nil)) {
					e.flood(frame(opContinuation, nil))
				}
			},
			rate: 4000, ends: []string{"close 1008"}, why: "the same: RFC 6455 section 5.4 allows them, the time does not",
		},
		{
			name: "WebSocket that never answers a ping", enemies: 200, growth: 32,
			conduct: func(e *enemy) { e.upgrade() },
			ends:    []string{"close 1001"}, why: "--timeout-ping, and as long again after the ping",
		},
	}
}

// unreadAttacks ask for much and read nothing. They hold on until the edge is seen to
// have cut them off.
func unreadAttacks() []attack {
	const why = "--timeout-write: a client that reads none of what waits for it; --limit-unread holds up what it asks meanwhile"
	cut := []string{endCut}
	return []attack{
		{
			name: "unread answers to batches of 1000", enemies: 50, growth: 400, alone: true, deaf: true, window: 4 << 10,
			conduct: func(e *enemy) { e.send(bytes.Repeat(e.army.request(batch(1000, lookup)), 8)) },
			ends:    cut, why: why + "; of each, two batches of 1000 answers and 1.4 MB are held, and what it takes to make them; --limit-in-flight-total is shared out, so that nobody is refused",
		},
		{
			name: "unread messages for batches of 1000", enemies: 50, growth: 400, deaf: true, window: 4 << 10,
			conduct: func(e *enemy) {
				if e.send(e.army.handshake()) && e.pause(e.army.Unit/10) { // without reading it cannot know that it was accepted
					e.send(bytes.Repeat(frame(opText|fin, []byte(batch(1000, lookup))), 8))
				}
			},
			ends: cut, why: why + ", or --timeout-ping where the system's buffers have room for it; beyond --limit-in-flight each call has an error for an answer",
		},
		{
			name: "unread answers to single requests", enemies: 50, growth: 64, deaf: true, window: 4 << 10,
			conduct: func(e *enemy) { e.send(bytes.Repeat(e.army.request(lookup), 10_000)) },
			ends:    cut, why: why,
		},
		{
			name: "unread pongs", enemies: 50, growth: 64, only: overTCP, deaf: true, window: 4 << 10,
			conduct: func(e *enemy) {
				if e.send(e.army.handshake()) && e.pause(e.army.Unit/10) {
					e.send(bytes.Repeat(frame(opPing|fin, bytes.Repeat([]byte("p"), 125)), 80_000))
				}
			},
			ends: cut, why: why,
		},
	}
}
