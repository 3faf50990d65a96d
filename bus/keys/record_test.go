package keys

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRecordKeepsWhatItDoesNotKnow(t *testing.T) {
	var h hash
	in := `{"id":"` + h.id() + `","name":"n","created":"2026-01-02T03:04:05Z","state":"active","budget":{"rps":5},"owners":["a"]}`
	r, err := readRecord(h, []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	r.State, r.Revoked = Revoked, time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	out, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"budget":{"rps":5},"created":"2026-01-02T03:04:05Z","id":"0000000000000000","name":"n","owners":["a"],"revoked":"2026-02-03T04:05:06Z","state":"revoked"}`
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
		{"settings", `{"id":"` + id + `","name":"x","rate":5,"burst":6,"origins":["https://a.example"],"networks":["n"],"methods":["eth_later"]}`, true, true},
		{"empty settings", `{"id":"` + id + `","name":"x","rate":0,"origins":[],"networks":null}`, true, true},
		{"rate of another type", `{"id":"` + id + `","name":"x","rate":"5"}`, false, false},
		{"rate in parts", `{"id":"` + id + `","name":"x","rate":0.5}`, false, false},
		{"negative rate", `{"id":"` + id + `","name":"x","rate":-5}`, false, false},
		{"burst alone", `{"id":"` + id + `","name":"x","burst":5}`, false, false},
		{"origin that is none", `{"id":"` + id + `","name":"x","origins":["a.example"]}`, false, false},
		{"origins of another type", `{"id":"` + id + `","name":"x","origins":{"https://a.example":true}}`, false, false},
		{"network that is none", `{"id":"` + id + `","name":"x","networks":["a b"]}`, false, false},
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

// TestRecordOfSettings: what is empty is not written, and what is emptied does not
// come back, however it was spelled.
func TestRecordOfSettings(t *testing.T) {
	var h hash
	in := `{"ID":"` + h.id() + `","name":"n","Rate":5,"BURST":6,"origins":["*"],"networks":["m"],"methods":["eth_later"],"Max-Conns":7,"later":1}`
	r, err := readRecord(h, []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{5, 6, []string{"*"}, []string{"m"}, []string{"eth_later"}, 7}
	if !same(r.Settings, want) {
		t.Errorf("got %+v, want %+v", r.Settings, want)
	}
	r.Settings = Settings{}
	out, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"0000000000000000","later":1,"name":"n","state":""}`; string(out) != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}

// same says whether two settings are, where a list that is empty is none.
func same(a, b Settings) bool {
	return a.Rate == b.Rate && a.Burst == b.Burst && a.MaxConns == b.MaxConns && slices.Equal(a.Origins, b.Origins) &&
		slices.Equal(a.Networks, b.Networks) && slices.Equal(a.Methods, b.Methods)
}

// FuzzRecord: what was read and is written again reads the same, with every
// unknown member kept.
func FuzzRecord(f *testing.F) {
	var h hash
	f.Add([]byte(`{"id":"` + h.id() + `","name":"x","state":"active","rate":{"a":1}}`))
	f.Add([]byte(`{"id":"` + h.id() + `","name":"x","created":"2026-01-02T03:04:05Z","ID":"y"}`))
	f.Add([]byte(`{"id":"` + h.id() + `","name":"x","Rate":5,"burst":6,"origins":["https://*.a.example"],"networks":["m"],"methods":["n"],"max-conns":3}`))
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
		if again.ID != r.ID || again.Name != r.Name || again.State != r.State || !again.Created.Equal(r.Created) || len(again.extra) != len(r.extra) ||
			!same(again.Settings, r.Settings) {
			t.Errorf("%+v became %+v", r, again)
		}
	})
}
