package main

import "bytes"

// connectionAttacks are about connections, not what they carry.
func connectionAttacks() []attack {
	left := []string{endLeft}
	return []attack{
		{
			name: "15,000 connections that never speak", enemies: 15_000, processes: 2, growth: 48, only: overTCP, alone: true, rate: 7500,
			conduct: func(*enemy) {},
			ends:    []string{endClosed}, aloneEnds: []string{endClosed, endReset},
			why: "--timeout-idle; from one address --limit-conns-per-addr, half of what the edge takes",
		},
		{
			name: "connections that never speak behind TLS", enemies: 400, growth: 64, only: overTLS, rate: 150,
			conduct: func(*enemy) {},
			ends:    []string{endClosed}, why: "--timeout-idle, once the handshake is done",
		},
		{
			name: "connect and close", enemies: 64, growth: 16, rate: 1500, again: true, only: overTCP,
			conduct: (*enemy).leave, ends: left, why: "there is nothing to answer",
		},
		{
			name: "connect and reset", enemies: 64, growth: 16, rate: 1500, again: true, only: overTCP,
			conduct: (*enemy).reset, ends: left, why: "there is nothing to answer",
		},
		{
			name: "reset in the header", enemies: 32, growth: 16, rate: 300, again: true,
			conduct: func(e *enemy) { e.send(e.army.head(1000)[:40]); e.reset() },
			ends:    left, why: "a header in part is forgotten",
		},
		{
			name: "reset in the body", enemies: 32, growth: 64, rate: 300, again: true,
			conduct: func(e *enemy) { e.send(e.army.request(batch(500, lookup))[:30_000]); e.reset() },
			ends:    left, why: "a body in part is forgotten, and counted no more towards --limit-input-total",
		},
		{
			name: "reset before the answer", enemies: 32, growth: 64, rate: 100, again: true,
			conduct: func(e *enemy) { e.send(e.army.request(batch(100, lookup))); e.reset() },
			answers: []string{"200"}, ends: left, why: "answers to nobody are dropped when they come",
		},
		{
			name: "reset in the answer", enemies: 32, growth: 192, rate: 30, again: true, deaf: true, window: 4 << 10,
			conduct: func(e *enemy) {
				e.send(e.army.request(batch(1000, lookup)))
				// The first bytes of an answer of 1.4 MB are there; what follows fits no window.
				_, _ = e.conn.Read(make([]byte, 100))
				e.reset()
			},
			ends: left, why: "what waits to be written is dropped with its connection",
		},
		{
			name: "reset in the upgrade", enemies: 32, growth: 16, rate: 300, again: true,
			conduct: func(e *enemy) { e.send(e.army.handshake()[:60]); e.reset() },
			ends:    left, why: "a header in part is forgotten",
		},
		{
			name: "reset on the WebSocket", enemies: 32, growth: 32, rate: 200, again: true,
			conduct: func(e *enemy) {
				if e.upgrade() {
					e.send(bytes.Repeat(frame(opText|fin, []byte(lookup)), 20))
				}
				e.reset()
			},
			answers: []string{"message"}, ends: left, why: "answers to nobody are dropped when they come",
		},
	}
}
