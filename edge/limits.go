package edge

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Limits bound what a stranger can make the edge hold. The tags are the single
// place of defaults and descriptions: flags, help texts and New read them. A zero
// field means the default.
type Limits struct {
	Body      int `default:"1048576" help:"Bytes of an HTTP request's body."`
	Message   int `default:"1048576" help:"Bytes of a WebSocket message, its fragments together."`
	Batch     int `default:"1000" help:"Calls in one batch."`
	Response  int `default:"25000000" help:"Bytes of the answers to one batch."`
	Pipeline  int `default:"16" help:"HTTP requests of one connection that wait for their answer; beyond it the connection is not read."`
	InFlight  int `default:"1024" help:"Lookups of one connection that wait for their answer."`
	Unread    int `default:"262144" help:"Bytes that wait for a client beyond which it is not read."`
	Unwritten int `default:"33554432" help:"Bytes that wait for a client beyond which it is closed."`

	InFlightTotal     int `default:"1024" help:"Lookups that are asked at a time, for all clients; the others wait. A key or an address may take half of what is left, a connection half of what these have left of that."`
	InputTotal        int `default:"0" help:"Bytes of messages that have come in part, of all clients together; 0 means an eighth of --overload-memory, 512 MiB at most."`
	UnwrittenTotal    int `default:"0" help:"Bytes that wait for all clients together; one of them may take up a quarter of what is left. 0 means a quarter of --overload-memory, 512 MiB at most."`
	Conns             int `default:"0" help:"Open connections; 0 means nine tenths of the files that the process may open."`
	ConnsPerAddr      int `default:"0" help:"Open connections of one address (one IPv6 /64); 0 means half of them. Behind a balancer allow all."`
	ConnsPerKey       int `default:"0" help:"Open WebSockets of one key, unless its settings say otherwise; 0 means half of all connections."`
	Handshakes        int `default:"0" help:"TLS handshakes that compute at a time; 0 means half of the processors."`
	HandshakesPerAddr int `default:"4096" help:"TLS handshakes of one address."`
	HandshakeQueue    int `default:"4096" help:"TLS handshakes that wait, for their client or to compute."`
}

// Timeouts bound how long a client may keep something open. They are tagged like
// Limits.
type Timeouts struct {
	Handshake time.Duration `default:"5s" help:"A TLS handshake, waiting for it included."`
	Header    time.Duration `default:"5s" help:"From a request's first byte to the end of its header."`
	Body      time.Duration `default:"10s" help:"From there to the end of its body, and from a WebSocket message's first byte to its last."`
	Idle      time.Duration `default:"60s" help:"An HTTP connection without a request."`
	Ping      time.Duration `default:"30s" help:"A silent WebSocket until it is pinged, and from there until it is closed."`
	Write     time.Duration `default:"30s" help:"A client that reads none of what waits for it."`
	Lookup    time.Duration `default:"10s" help:"A call until it is answered with an error."`
	Drain     time.Duration `default:"10s" help:"Connections that are still open when the edge stops."`
}

// replySlack is what must fit beside the largest response in a connection's
// unwritten bytes: its header, and what was queued before.
const replySlack = 1 << 20

// Validate reports limits that cannot work, by the names of their flags.
func (l Limits) Validate() error {
	_, err := l.withDefaults()
	return err
}

func (l Limits) withDefaults() (Limits, error) {
	if err := setDefaults(reflect.ValueOf(&l).Elem()); err != nil {
		return l, fmt.Errorf("--limit-%w", err)
	}
	if l.Unwritten < l.Response+l.Unread+replySlack {
		return l, fmt.Errorf("--limit-unwritten: %d must hold the largest response (%d), what may be unread (%d) and %d more",
			l.Unwritten, l.Response, l.Unread, replySlack)
	}
	return l, nil
}

// ofMemory fills in what depends on how much memory there is, 0 when nobody knows. What
// strangers can have an edge hold stays below the stages of its overload: these shed
// what all else comes to.
func (l Limits) ofMemory(budget uint64) Limits {
	const most = 512 << 20
	share := func(part uint64) int {
		if budget == 0 {
			return most
		}
		return int(min(budget/part, most))
	}
	if l.InputTotal == 0 {
		l.InputTotal = share(8)
	}
	if l.UnwrittenTotal == 0 {
		l.UnwrittenTotal = share(4)
	}
	return l
}

func (t Timeouts) withDefaults() (Timeouts, error) {
	if err := setDefaults(reflect.ValueOf(&t).Elem()); err != nil {
		return t, fmt.Errorf("--timeout-%w", err)
	}
	return t, nil
}

// kebab is a field's name as its flag has it: ConnsPerAddr is conns-per-addr.
func kebab(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && unicode.IsUpper(c) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// setDefaults gives each zero field the value of its default tag.
func setDefaults(v reflect.Value) error {
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		switch {
		case f.Kind() == reflect.Bool: // false
		case f.Int() < 0:
			return fmt.Errorf("%s: must not be negative", kebab(field.Name))
		case f.Int() > 0:
		case field.Type == reflect.TypeFor[time.Duration]():
			d, err := time.ParseDuration(field.Tag.Get("default"))
			if err != nil {
				return err
			}
			f.SetInt(int64(d))
		default:
			n, err := strconv.Atoi(field.Tag.Get("default"))
			if err != nil {
				return err
			}
			f.SetInt(int64(n))
		}
	}
	return nil
}
