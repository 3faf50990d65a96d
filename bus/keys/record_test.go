package keys

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestRecordKeepsWhatItDoesNotKnow(t *testing.T) {
	var h hash
	in := `{"id":"` + h.id() + `","name":"n","created":"2026-01-02T03:04:05Z","state":"active","rate":{"rps":5},"origins":["a"]}`
	r, err := readRecord(h, []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	r.State, r.Revoked = Revoked, time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	out, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"created":"2026-01-02T03:04:05Z","id":"0000000000000000","name":"n","origins":["a"],"rate":{"rps":5},"revoked":"2026-02-03T04:05:06Z","state":"revoked"}`
	if string(out) != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}

func TestReadRecord(t *testing.T) {
	var h hash
	id := h.id()
	for _, c := range []struct {
		name, in string
		ok, good bool
	}{
		{"least", `{"id":"` + id + `","name":"x"}`, true, true},
		{"unknown state", `{"id":"` + id + `","name":"x","state":"paused"}`, true, false},
		{"revoked", `{"id":"` + id + `","name":"x","state":"revoked"}`, true, false},
		{"another's ID", `{"id":"1111111111111111","name":"x"}`, false, false},
		{"no name", `{"id":"` + id + `"}`, false, false},
		{"control character", `{"id":"` + id + `","name":"a\nb"}`, false, false},
		{"long name", `{"id":"` + id + `","name":"` + strings.Repeat("x", 65) + `"}`, false, false},
		{"no JSON", `hello`, false, false},
		{"null", `null`, false, false},
		{"wrong type", `{"id":5}`, false, false},
		{"too large", `{"id":"` + id + `","name":"x","pad":"` + strings.Repeat("x", maxRecord) + `"}`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := readRecord(h, []byte(c.in))
			if (err == nil) != c.ok {
				t.Fatalf("got error %v", err)
			}
			if err == nil && r.Usable() != c.good {
				t.Errorf("usable %v, want %v", r.Usable(), c.good)
			}
		})
	}
}

// FuzzRecord: what was read and is written again reads the same, with every
// unknown member kept.
func FuzzRecord(f *testing.F) {
	var h hash
	f.Add([]byte(`{"id":"` + h.id() + `","name":"x","state":"active","rate":{"a":1}}`))
	f.Add([]byte(`{"id":"` + h.id() + `","name":"x","created":"2026-01-02T03:04:05Z","ID":"y"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRecord(h, b)
		if err != nil {
			return
		}
		out, err := json.Marshal(&r)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		var again Record
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("written but not read: %v", err)
		}
		if again.ID != r.ID || again.Name != r.Name || again.State != r.State || !again.Created.Equal(r.Created) || len(again.extra) != len(r.extra) {
			t.Errorf("%+v became %+v", r, again)
		}
	})
}
