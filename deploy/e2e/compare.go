//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// request is a message that was put to both sides.
type request struct {
	text    string
	objects []requestObject // as encoding/json reads them; none if it cannot
}

// requestObject is one of the requests in a message.
type requestObject struct {
	members  map[string]json.RawMessage // where a name is repeated, the last value
	repeated map[string]bool            // names that are
}

func newRequest(text string) request {
	r := request{text: text}
	if !json.Valid([]byte(text)) {
		return r
	}
	list := []json.RawMessage{[]byte(text)}
	_ = json.Unmarshal([]byte(text), &list) // it may be a single one
	for _, raw := range list {
		if o, ok := newRequestObject(raw); ok {
			r.objects = append(r.objects, o)
		}
	}
	return r
}

// newRequestObject reads valid JSON, and returns false if it is no object.
func newRequestObject(raw []byte) (o requestObject, ok bool) {
	o = requestObject{members: map[string]json.RawMessage{}, repeated: map[string]bool{}}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return o, false
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return o, false
		}
		_, o.repeated[name.(string)] = o.members[name.(string)]
		o.members[name.(string)] = value
	}
	return o, true
}

// any says whether there is a request that is so.
func (r request) any(so func(requestObject) bool) bool { return slices.ContainsFunc(r.objects, so) }

// has says whether the request has this id.
func (o requestObject) has(id json.RawMessage) bool { return bytes.Equal(o.members["id"], id) }

// isNoString says whether there is such a member that is no string.
func (o requestObject) isNoString(name string) bool {
	value := o.members[name]
	return len(value) > 0 && value[0] != '"'
}

// param returns a parameter, nil if there is none.
func (o requestObject) param(i int) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(o.members["params"], &list) != nil || i >= len(list) {
		return nil
	}
	return list[i]
}

// text returns a member that is a string, unescaped.
func (o requestObject) text(name string) (s string) {
	_ = json.Unmarshal(o.members[name], &s) // empty if it is none
	return s
}

// answers is what came back to a message: nothing, a response, or an array of them.
type answers struct {
	batch bool
	list  []response
}

func readAnswers(raw []byte) (a answers, err error) {
	switch trimmed := bytes.TrimSpace(raw); {
	case len(trimmed) == 0:
		return a, nil
	case trimmed[0] == '[':
		a.batch = true
		return a, strict(raw, &a.list)
	default:
		a.list = make([]response, 1)
		return a, strict(raw, &a.list[0])
	}
}

func (r *response) String() string {
	if r == nil {
		return "silence"
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// same says whether two responses have the same values, the id and the result byte
// for byte.
func (r *response) same(o *response) bool {
	if r.Version != o.Version || !bytes.Equal(r.ID, o.ID) || !bytes.Equal(r.Result, o.Result) || (r.Error == nil) != (o.Error == nil) {
		return false
	}
	return r.Error == nil || r.Error.Code == o.Error.Code && r.Error.Message == o.Error.Message && bytes.Equal(r.Error.Data, o.Error.Data)
}

// comparison counts what was compared. It is used by one goroutine at a time.
type comparison struct {
	messages, answers, equal, different int
	allowed                             map[string]int // by the name of an allowance
}

func newComparison() *comparison { return &comparison{allowed: map[string]int{}} }

// add adds the counts of another comparison.
func (c *comparison) add(o *comparison) {
	c.messages += o.messages
	c.answers += o.answers
	c.equal += o.equal
	c.different += o.different
	for name, n := range o.allowed {
		c.allowed[name] += n
	}
}

// maxShown is how many differences are printed.
const maxShown = 25

// compare holds our answer to a message to geth's.
func (c *comparison) compare(tb testing.TB, way, text string, geth, ours []byte) {
	tb.Helper()
	c.messages++
	if err := c.message(newRequest(text), geth, ours); err != nil {
		if c.different++; c.different <= maxShown {
			tb.Errorf("%s: %v\nasked %.1000q\ngeth  %.600s\nours  %.600s", way, err, text, geth, ours)
		}
	}
}

func (c *comparison) message(r request, gethRaw, oursRaw []byte) error {
	geth, err := readAnswers(gethRaw)
	if err != nil {
		return fmt.Errorf("geth's answer: %w", err)
	}
	ours, err := readAnswers(oursRaw)
	if err != nil {
		return fmt.Errorf("our answer: %w", err)
	}
	if geth.batch != ours.batch && len(geth.list) > 0 {
		// What concerns the message as a whole is answered by a single response.
		if ours.batch || len(ours.list) != 1 || !c.allow(r, nil, &ours.list[0]) {
			return fmt.Errorf("one answer is an array and the other is not")
		}
		return nil
	}
	rest := geth.list
	for i := range ours.list {
		o := &ours.list[i]
		switch {
		case len(rest) > 0 && rest[0].same(o):
			c.answers++
			c.equal++
		case len(rest) > 0 && c.allow(r, &rest[0], o):
		case c.allow(r, nil, o):
			continue // geth says nothing here
		case len(rest) > 0:
			return fmt.Errorf("answer %d: ours is %.400v, geth's is %.400v", i, o, &rest[0])
		default:
			return fmt.Errorf("answer %d: ours is %.400v, geth is silent", i, o)
		}
		rest = rest[1:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("we are silent where geth answers %.400v", &rest[0])
	}
	if len(ours.list) == 0 {
		c.answers++
		c.equal++ // both are silent
	}
	return nil
}

// allow finds the allowance for a difference, and counts it.
func (c *comparison) allow(r request, geth, ours *response) bool {
	for _, a := range allowances {
		if a.allows(r, geth, ours) {
			c.answers++
			c.allowed[a.name]++
			return true
		}
	}
	return false
}

// String is the counts, a line for each allowance.
func (c *comparison) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "compared: %d messages, %d answers; equal: %d; differences: %d", c.messages, c.answers, c.equal, c.different)
	for _, a := range allowances {
		if n := c.allowed[a.name]; n > 0 {
			fmt.Fprintf(&b, "\n  allowed: %6d  %s: %s", n, a.name, a.reason)
		}
	}
	return b.String()
}
