package keys

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxName is the length of the longest name, in characters.
	MaxName = 64
	// maxRecord bounds a record in the bucket, in bytes.
	maxRecord = 4096
	// roomToRevoke is what must be left of it, for the end and for the header of the
	// message that writes it, which JetStream counts in: no key may be too large to
	// revoke.
	roomToRevoke = 256
)

// State says whether a key is good. A state that this version does not know counts
// as not good.
type State string

// The states.
const (
	Active  State = "active"
	Revoked State = "revoked"
)

// Errors of records.
var (
	// ErrName: a name is not 1 to 64 printable characters.
	ErrName = errors.New("a key's name must be 1 to 64 printable characters, no space around it, and nothing that could be an ID")
	// ErrTooLarge: the lists of a key's settings are too long together.
	ErrTooLarge = errors.New("the settings are too large: shorten the lists, or split them between two keys")
	// errRecord: what the bucket holds is no record.
	errRecord = errors.New("not a record of a key")
)

// Record is what is kept about a key. Times are UTC, in whole seconds.
type Record struct {
	ID      string
	Name    string // chosen by the operator; need not be unique
	Created time.Time
	State   State     // empty means Active
	Revoked time.Time // zero unless revoked
	Settings

	// extra are the members that this version does not know. They are written
	// back as they were, so that an older tool does no harm to newer records.
	extra map[string]json.RawMessage
}

// Usable says whether the key is good.
func (r *Record) Usable() bool { return r.State == Active || r.State == "" }

// recordJSON is a record's form in the bucket.
type recordJSON struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created,omitzero"`
	State   State     `json:"state"`
	Revoked time.Time `json:"revoked,omitzero"`
	Settings
}

// recordMembers are the names in recordJSON.
var recordMembers = [...]string{"id", "name", "created", "state", "revoked", "rate", "burst", "origins", "networks", "methods", "max-conns"}

// MarshalJSON implements json.Marshaler.
func (r *Record) MarshalJSON() ([]byte, error) {
	known, err := json.Marshal(recordJSON{r.ID, r.Name, r.Created, r.State, r.Revoked, r.Settings})
	if err != nil || len(r.extra) == 0 {
		return known, err
	}
	all := maps.Clone(r.extra)
	if err := json.Unmarshal(known, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Record) UnmarshalJSON(b []byte) error {
	var k recordJSON
	if err := json.Unmarshal(b, &k); err != nil {
		return err
	}
	var extra map[string]json.RawMessage
	if err := json.Unmarshal(b, &extra); err != nil {
		return err
	}
	// In any case, as encoding/json reads them: one left behind would come back when
	// the member itself is emptied.
	maps.DeleteFunc(extra, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(recordMembers[:], func(m string) bool { return strings.EqualFold(m, name) })
	})
	if len(extra) == 0 {
		extra = nil
	}
	*r = Record{k.ID, k.Name, k.Created, k.State, k.Revoked, k.Settings, extra}
	return nil
}

// readRecord reads the record of the key with that hash.
func readRecord(h hash, b []byte) (Record, error) {
	var r Record
	if len(b) > maxRecord {
		return r, fmt.Errorf("%w: %d bytes, more than %d", errRecord, len(b), maxRecord)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%w: %w", errRecord, err)
	}
	if r.ID != h.id() {
		return r, fmt.Errorf("%w: its ID is not that of its key", errRecord)
	}
	if err := checkName(r.Name); err != nil {
		return r, fmt.Errorf("%w: %w", errRecord, err)
	}
	if err := r.check(); err != nil {
		return r, fmt.Errorf("%w: %w", errRecord, err)
	}
	return r, nil
}

// validate reports what a record cannot be written with.
func (r *Record) validate() error {
	if err := checkName(r.Name); err != nil {
		return err
	}
	if err := r.Settings.Validate(); err != nil {
		return err
	}
	b, err := json.Marshal(r)
	if err == nil && len(b) > maxRecord-roomToRevoke {
		err = ErrTooLarge
	}
	return err
}

// looksLikeID says whether a name could be taken for the ID of another key.
func looksLikeID(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == idLen
}

func checkName(s string) error {
	if n := utf8.RuneCountInString(s); n == 0 || n > MaxName || !utf8.ValidString(s) {
		return ErrName
	}
	for _, c := range s {
		if !unicode.IsPrint(c) {
			return ErrName
		}
	}
	if strings.TrimSpace(s) != s || looksLikeID(s) {
		return ErrName
	}
	return nil
}
