package main

import "bytes"

// handshakeAttacks are about TLS before, and below, what it carries.
func handshakeAttacks() []attack {
	const (
		held     = "--timeout-handshake, counted from accepting: they wait for their client, and nobody for them"
		crowded  = held + "; --limit-handshake-queue, beyond which an address with the most loses one; --limit-handshakes-per-addr"
		shutdown = "crypto/tls answers with an alert and hangs up"
	)
	cut := []string{endClosed, endReset}
	return []attack{
		{
			// More than may wait, by half, or from one address six times what it may have.
			name: "handshakes that are never begun", enemies: 6000, growth: 64, rate: 3000, again: true, only: overTLS, alone: true, rawTLS: true,
			conduct: func(*enemy) {}, ends: cut, why: crowded,
		},
		{
			name: "half a ClientHello", enemies: 1000, growth: 64, rate: 1000, again: true, only: overTLS, rawTLS: true,
			conduct: func(e *enemy) { e.send(e.army.hello[:len(e.army.hello)/2]) }, ends: cut, why: held,
		},
		{
			name: "ClientHello, a byte now and then", enemies: 1000, growth: 64, only: overTLS, rawTLS: true, rate: 1000,
			conduct: func(e *enemy) { e.drip(e.army.hello, e.army.Unit/5) }, ends: cut, why: held,
		},
		{
			name: "silence after the ServerHello", enemies: 400, growth: 64, rate: 200, only: overTLS, rawTLS: true,
			conduct: func(e *enemy) { e.send(e.army.hello) },
			ends:    cut, why: held,
		},
		{
			name: "reset in the handshake", enemies: 32, growth: 16, rate: 100, again: true, only: overTLS, rawTLS: true,
			conduct: func(e *enemy) { e.send(e.army.hello); e.reset() },
			ends:    []string{endLeft}, why: "the handshake ends with its connection",
		},
		{
			name: "whole handshakes without end", enemies: 32, growth: 32, rate: 150, again: true, only: overTLS,
			conduct: (*enemy).leave, ends: []string{endLeft}, why: "there is nothing to answer",
		},
		{
			name: "HTTP where TLS is spoken", enemies: 16, growth: 16, rate: 300, again: true, only: overTLS, rawTLS: true,
			conduct: once(func(a *army) []byte { return a.request(lookup) }), ends: cut, why: shutdown,
		},
		{
			name: "records of the wrong length", enemies: 16, growth: 16, rate: 300, again: true, only: overTLS, rawTLS: true,
			conduct: once(func(*army) []byte { return append([]byte{22, 3, 1, 0xFF, 0xFF}, bytes.Repeat([]byte{0}, 1000)...) }),
			ends:    cut, why: shutdown + ": RFC 8446 section 5.1",
		},
		{
			name: "key updates without end", enemies: 16, growth: 32, rate: 100, again: true, only: overTLS, rawTLS: true, keyed: true,
			conduct: func(e *enemy) { e.send(e.keys.updates(100)) },
			ends:    cut, why: "crypto/tls takes 16 records in a row that carry nothing",
		},
		{
			name: "key updates between bytes of a header", enemies: 16, growth: 32, rate: 3000, only: overTLS, rawTLS: true, keyed: true,
			conduct: func(e *enemy) {
				for e.turn() && e.send(append(e.keys.update(), e.keys.record(recordData, []byte("A"))...)) {
				}
			},
			ends: cut, why: "--timeout-header: each is answered with one until then (RFC 8446 section 4.6.3)",
		},
	}
}
