package main

import "bytes"

// messages is a conduct that sends the same frames again and again on a WebSocket.
func messages(frames []byte) func(*enemy) {
	return func(e *enemy) {
		if e.upgrade() {
			e.flood(frames)
		}
	}
}

// one is a conduct that opens a WebSocket, sends something and waits.
func one(p []byte) func(*enemy) {
	return func(e *enemy) {
		if e.upgrade() {
			e.send(p)
		}
	}
}

// messageAttacks are what WebSockets can be made to carry.
func messageAttacks() []attack {
	open := []string{endOpen}
	return []attack{
		{
			name: "pings of 125 bytes", enemies: 16, growth: 16, rate: 5000,
			conduct: messages(frame(opPing|fin, bytes.Repeat([]byte("p"), 125))),
			answers: []string{"pong"}, ends: open, why: "RFC 6455 section 5.5.2: each is answered",
		},
		{
			name: "pongs that nobody asked for", enemies: 16, growth: 16, rate: 5000, only: overTCP,
			conduct: messages(frame(opPong|fin, nil)), ends: open, why: "RFC 6455 section 5.5.3 allows them, and wants no answer",
		},
		{
			name: "messages of a byte", enemies: 16, growth: 16, rate: 5000,
			conduct: messages(frame(opText|fin, []byte("{"))), answers: []string{"message -32700"}, ends: open, why: "invalid JSON is answered, and the WebSocket stays",
		},
		{
			name: "empty messages", enemies: 16, growth: 16, rate: 5000, only: overTCP,
			conduct: messages(frame(opText|fin, nil)), ends: open, why: "silence, as for an empty body",
		},
		{
			name: "messages with an empty batch", enemies: 16, growth: 16, rate: 5000, only: overTCP,
			conduct: messages(frame(opText|fin, []byte("[]"))), answers: []string{"message -32600"}, ends: open, why: "JSON-RPC 2.0 section 6",
		},
		{
			name: "lookups without waiting for answers", enemies: 4, growth: 64, rate: 4, only: overTCP,
			conduct: messages(bytes.Repeat(frame(opText|fin, []byte(lookup)), 3000)),
			answers: []string{"message", "message -32005"}, ends: open, why: "1,024 in flight of a connection, the others are told so",
		},
		{
			name: "messages with a batch of 1000", enemies: 16, growth: 128, rate: 16, only: overTCP,
			conduct: messages(frame(opText|fin, []byte(batch(1000, lookup)))), answers: []string{"message"}, ends: open, why: "within --limit-batch and --limit-in-flight",
		},
		{
			name: "message of a terabyte", enemies: 16, growth: 16, rate: 300, again: true,
			conduct: one(frameHead(opText|fin, 1<<40)), ends: []string{"close 1009"}, why: "--limit-message, by its length alone",
		},
		{
			name: "ping of 126 bytes", enemies: 16, growth: 16, rate: 300, again: true, only: overTCP,
			conduct: one(frame(opPing|fin, make([]byte, 126))), ends: []string{"close 1002"}, why: "RFC 6455 section 5.5",
		},
		{
			name: "frame without a mask", enemies: 16, growth: 16, rate: 300, again: true, only: overTCP,
			conduct: one([]byte{opText | fin, 1, '1'}), ends: []string{"close 1002"}, why: "RFC 6455 section 5.1",
		},
		{
			name: "text that is not UTF-8", enemies: 16, growth: 16, rate: 300, again: true, only: overTCP,
			conduct: one(frame(opText|fin, []byte{0xFF})), ends: []string{"close 1007"}, why: "RFC 6455 section 8.1",
		},
	}
}
