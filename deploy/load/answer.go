package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// outcome is what came of the calls of one request.
type outcome struct {
	right  int // null among them
	null   int // whose result is null
	failed []failed
}

// failed are calls that failed alike.
type failed struct {
	calls int
	why   *Failure
}

func (o *outcome) fail(calls int, why *Failure) { o.failed = append(o.failed, failed{calls, why}) }

// all is the outcome of a request without an answer.
func all(calls int, why *Failure) (o outcome) {
	o.fail(calls, why)
	return o
}

// check holds an answer against what was asked with ids from id on. A server that
// writes its members in the order of the specification's examples, as all known ones
// do, is read without parsing its JSON.
func (qs *questions) check(r request, answer []byte, id uint64) (o outcome) {
	answer = bytes.TrimSpace(answer)
	if !r.batch {
		qs.checkCall(r, 0, answer, id, &o)
		return o
	}
	answers := splitBatch(answer, r.calls, id)
	if answers == nil && json.Unmarshal(answer, &answers) != nil {
		// The batch as a whole was refused, by an error with id null.
		return all(r.calls, refusal(answer))
	}
	if len(answers) != r.calls {
		why := &Failure{KindForm, fmt.Sprintf("%d answers to a batch of %d: %s", len(answers), r.calls, quote(answer))}
		if len(answers) == 1 {
			why = refusal(answers[0])
		}
		return all(r.calls, why)
	}
	for k, a := range answers {
		qs.checkCall(r, k, a, id+uint64(k), &o)
	}
	return o
}

// splitBatch finds where the answers to a batch begin by their ids. What it looks for
// cannot be within an answer: quotation marks in a string are escaped. It returns nil
// when the answers do not come as they should.
func splitBatch(answer []byte, calls int, id uint64) []json.RawMessage {
	if len(answer) < 2 || answer[0] != '[' || answer[len(answer)-1] != ']' {
		return nil
	}
	rest := answer[1 : len(answer)-1]
	list := make([]json.RawMessage, 0, calls)
	for k := range calls - 1 {
		next := append([]byte{','}, answerStart(id+uint64(k)+1)...)
		i := bytes.Index(rest, next)
		if i < 0 {
			return nil
		}
		list, rest = append(list, rest[:i]), rest[i+1:]
	}
	return append(list, rest)
}

// answerStart is how the answer to a call begins.
func answerStart(id uint64) []byte {
	return append(strconv.AppendUint(append(make([]byte, 0, 40), `{"jsonrpc":"2.0","id":`...), id, 10), ',')
}

// response is an answer, or an error.
type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// refusal is the error that answers a request as a whole.
func refusal(answer []byte) *Failure {
	var r response
	if json.Unmarshal(answer, &r) == nil && r.Error != nil {
		return rpcError(r.Error.Code, r.Error.Message)
	}
	return &Failure{KindForm, quote(answer)}
}

var (
	resultMember = []byte(`"result":`)
	nullResult   = []byte(`null`)
)

// checkCall checks the answer to one call.
func (qs *questions) checkCall(r request, call int, answer []byte, id uint64, o *outcome) {
	result, why := resultOf(answer, id)
	if why != nil {
		o.fail(1, why)
		return
	}
	i := qs.index(r, call)
	if q := &qs.all[i]; q.Hash != "" && !hasHash(result, q.Hash) {
		o.fail(1, &Failure{KindWrong, fmt.Sprintf("to %s, want the uncle %s: %s", q.Params, q.Hash, quote(result))})
		return
	}
	isNull := bytes.Equal(result, nullResult)
	if !isNull && (result[0] != '{' || !bytes.Contains(result, anyHash)) {
		o.fail(1, &Failure{KindWrong, fmt.Sprintf("to %s, neither null nor a block: %s", qs.all[i].Params, quote(result))})
		return
	}
	if qs.verify != nil && !isNull {
		if err := qs.verify.check(i, result); err != nil {
			o.fail(1, &Failure{KindWrong, fmt.Sprintf("to %s: %v", qs.all[i].Params, err)})
			return
		}
	}
	o.right++
	if isNull {
		o.null++
	}
}

// resultOf returns the result of an answer that has the form of one.
func resultOf(answer []byte, id uint64) (result []byte, why *Failure) {
	if rest, ok := bytes.CutPrefix(answer, answerStart(id)); ok && answer[len(answer)-1] == '}' {
		if result, ok := bytes.CutPrefix(rest, resultMember); ok && len(result) > 1 {
			return result[:len(result)-1], nil
		}
	}
	var r response
	if err := json.Unmarshal(answer, &r); err != nil || r.JSONRPC != "2.0" || (r.Result == nil) == (r.Error == nil) {
		return nil, &Failure{KindForm, quote(answer)}
	}
	sameID := string(r.ID) == strconv.FormatUint(id, 10)
	switch {
	case r.Error != nil && (sameID || string(r.ID) == "null"):
		return nil, rpcError(r.Error.Code, r.Error.Message)
	case !sameID:
		return nil, &Failure{KindID, fmt.Sprintf("want %d: %s", id, quote(r.ID))}
	default:
		return r.Result, nil
	}
}

// hashMember begins the member of the uncle's own hash. The quotation mark keeps
// parentHash apart.
var hashMember = []byte(`"hash":"`)

// anyHash is looked for in a block, cheaply.
var anyHash = []byte(`"hash"`)

// hasHash says whether a result is the uncle with that hash.
func hasHash(result []byte, hash string) bool {
	_, rest, ok := bytes.Cut(result, hashMember)
	n := len(hash)
	return ok && len(rest) > n && string(rest[:n]) == hash && rest[n] == '"'
}
