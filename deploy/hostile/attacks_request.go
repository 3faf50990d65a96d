package main

import (
	"bytes"
	"fmt"
	"strings"
)

// Messages that are sent.
const (
	lookup  = `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x8","0x0"]}`
	unknown = `{"jsonrpc":"2.0","id":1,"method":"eth_getUncle","params":[]}`
)

// batch is n times the same call.
func batch(n int, call string) string {
	return "[" + strings.Repeat(call+",", n-1) + call + "]"
}

// withID is the lookup with an id.
func withID(id string) string { return strings.Replace(lookup, `"id":1`, `"id":`+id, 1) }

// head is the header of a request with a body of a length.
func (a *army) head(length int) []byte {
	return fmt.Appendf(nil, "POST /v3/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", a.Site.Key, length)
}

// request is a whole request.
func (a *army) request(body string) []byte { return append(a.head(len(body)), body...) }

// chunked is the header of a request with a body in chunks.
func (a *army) chunked() []byte {
	return fmt.Appendf(nil, "POST /v3/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", a.Site.Key)
}

// requests is a conduct that sends the same request again and again, and reads the
// answers.
func requests(body string) func(*enemy) {
	return func(e *enemy) { e.flood(e.army.request(body)) }
}

// once is a conduct that sends something and waits for what becomes of it.
func once(p func(a *army) []byte) func(*enemy) {
	return func(e *enemy) { e.send(p(e.army)) }
}

// requestAttacks are HTTP requests that cost more than they look, or are none.
func requestAttacks() []attack {
	open := []string{endOpen}
	return []attack{
		{
			name: "batches of 1000, read", enemies: 16, growth: 128, rate: 16,
			conduct: requests(batch(1000, lookup)),
			answers: []string{"200"}, ends: open, why: "they are within --limit-batch; 16,000 lookups a second",
		},
		{
			name: "empty batches", enemies: 16, growth: 16, rate: 3000, only: overTCP,
			conduct: requests("[]"), answers: []string{"200 -32600"}, ends: open, why: "JSON-RPC 2.0 section 6",
		},
		{
			name: "invalid JSON", enemies: 16, growth: 16, rate: 3000, only: overTCP,
			conduct: requests(`{"jsonrpc":"2.0"`), answers: []string{"200 -32700"}, ends: open, why: "an answer, and the connection stays",
		},
		{
			name: "unknown methods", enemies: 16, growth: 16, rate: 3000, only: overTCP,
			conduct: requests(unknown), answers: []string{"200 -32601"}, ends: open, why: "an answer that asks no worker",
		},
		{
			name: "unknown keys", enemies: 16, growth: 16, rate: 3000,
			conduct: func(e *enemy) {
				for i := 0; e.turn(); i++ {
					key := fmt.Sprintf("%032x", i)
					if !e.send(fmt.Appendf(nil, "POST /v3/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, len(lookup), lookup)) {
						return
					}
				}
			},
			answers: []string{"401 -32002"}, ends: open, why: "a lookup in memory; unknown keys are not remembered",
		},
		{
			name: "deep nesting", enemies: 16, growth: 128, rate: 40, only: overTCP,
			conduct: requests(strings.Repeat("[", 1<<20-1)), answers: []string{"200 -32700"}, ends: open, why: "jsonrpc.DefaultDepth: read no further than 128 deep",
		},
		{
			name: "ids of 1 MiB", enemies: 16, growth: 192, rate: 20, only: overTCP,
			conduct: requests(withID(`"` + strings.Repeat("i", 1<<20-200) + `"`)), answers: []string{"200"}, ends: open, why: "an id is echoed; --limit-body is its limit",
		},
		{
			name: "numbers of a million digits", enemies: 16, growth: 192, rate: 20, only: overTCP,
			conduct: requests(withID("1" + strings.Repeat("0", 1<<20-200))), answers: []string{"200"}, ends: open, why: "an id is not computed with, but echoed",
		},
		{
			name: "block numbers of a million digits", enemies: 16, growth: 128, rate: 20, only: overTCP,
			conduct: requests(strings.Replace(lookup, "0x8", "0x"+strings.Repeat("f", 1<<20-200), 1)), answers: []string{"200 -32602"}, ends: open, why: "over 64 bits",
		},
		{
			name: "chunks of a byte", enemies: 16, growth: 16, rate: 200,
			conduct: func(e *enemy) {
				body := e.army.chunked()
				for i := range len(lookup) {
					body = append(body, "1\r\n"+lookup[i:i+1]+"\r\n"...)
				}
				e.flood(append(body, "0\r\n\r\n"...))
			},
			answers: []string{"200"}, ends: open, why: "RFC 9112 section 7.1 sets no least size",
		},
		{
			name: "chunk extensions without end", enemies: 16, growth: 16, rate: 500, again: true, only: overTCP,
			conduct: once(func(a *army) []byte { return append(a.chunked(), "1;"+strings.Repeat("x", 100_000)...) }),
			ends:    []string{"400"}, why: "a chunk's line has 256 bytes at most",
		},
		{
			name: "body without end in chunks", enemies: 16, growth: 64, rate: 50, again: true, only: overTCP,
			conduct: once(func(a *army) []byte {
				return append(a.chunked(), bytes.Repeat([]byte("400\r\n"+strings.Repeat(" ", 1<<10)+"\r\n"), 1100)...)
			}),
			ends: []string{"413"}, why: "--limit-body counts as it comes; what follows is read for a while, lest a reset destroy the answer",
		},
		{
			name: "body of a terabyte", enemies: 16, growth: 16, rate: 500, again: true, only: overTCP,
			conduct: once(func(a *army) []byte { return a.head(1 << 40) }),
			ends:    []string{"413"}, why: "--limit-body, by its length alone",
		},
		{
			name: "header fields by the thousand", enemies: 16, growth: 16, rate: 500, again: true,
			conduct: once(func(*army) []byte {
				return []byte("POST / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("a: b\r\n", 10_000))
			}),
			ends: []string{"431"}, why: "100 fields; 16 KiB",
		},
		{
			name: "request line without end", enemies: 16, growth: 16, rate: 500, again: true, only: overTCP,
			conduct: once(func(*army) []byte { return []byte("POST /" + strings.Repeat("a", 100_000)) }),
			ends:    []string{"414"}, why: "8 KiB",
		},
		{
			name: "preface of HTTP/2", enemies: 16, growth: 16, rate: 500, again: true,
			conduct: once(func(*army) []byte { return []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") }),
			ends:    []string{"505"}, why: "HTTP/1.1 is spoken here; with TLS, ALPN says so before",
		},
		{
			name: "two lengths", enemies: 16, growth: 16, rate: 500, again: true, only: overTCP,
			conduct: once(func(a *army) []byte {
				return bytes.Replace(a.request(lookup), []byte("\r\n\r\n"), []byte("\r\nContent-Length: 0\r\n\r\n"), 1)
			}),
			ends: []string{"400"}, why: "RFC 9112 section 6.3: it smuggles a request",
		},
	}
}
