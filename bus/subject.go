package bus

import (
	"fmt"
	"strings"

	"github.com/ommer/ommer/schema"
)

// queue is the queue group of the workers: each question goes to one of them.
const queue = "lookup"

// maxToken bounds the names that become part of a subject, in bytes.
const maxToken = 64

// questionSubject is where a network's questions of one method are asked.
func questionSubject(network string, m schema.Method) string {
	return "ommer.v1." + network + "." + m.String()
}

// questionSubjects is the pattern of all questions of a network.
func questionSubjects(network string) string { return "ommer.v1." + network + ".*" }

// directSubject is where one worker is asked.
func directSubject(worker, network string, m schema.Method) string {
	return "ommer.w." + worker + ".v1." + network + "." + m.String()
}

// directSubjects is the pattern of the questions for one worker alone.
func directSubjects(worker, network string) string {
	return "ommer.w." + worker + ".v1." + network + ".*"
}

// isReply says whether a worker answers to a subject: an edge's, or the inbox of whoever
// asks by hand. Else who may ask could have a worker write wherever it may, such as to
// the registry of keys.
func isReply(subject string) bool {
	return strings.HasPrefix(subject, "_R.") || strings.HasPrefix(subject, "_INBOX.")
}

// checkToken says whether s can be one token of a subject. What names the field
// in the error.
func checkToken(what, s string) error {
	if len(s) == 0 || len(s) > maxToken {
		return fmt.Errorf("%w: %s must be 1 to %d characters long", ErrConfig, what, maxToken)
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("%w: %s %q has a character other than letters, digits, '-' and '_'", ErrConfig, what, s)
		}
	}
	return nil
}

// lastToken is the part of a subject after its last dot.
func lastToken(subject string) string {
	for i := len(subject) - 1; i >= 0; i-- {
		if subject[i] == '.' {
			return subject[i+1:]
		}
	}
	return subject
}
