package bus

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	l := Load{Worker: "w1", Instance: "abc", Network: "mainnet", State: Ready, InFlight: 3, MaxInFlight: 10, ServiceTime: time.Millisecond, Answered: 7}
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parseLoad("ommer.load.w1", b); err != nil || got != l {
		t.Errorf("got %+v, %v", got, err)
	}
	// A later version may say more.
	if _, err := parseLoad("ommer.load.w1", append(b[:len(b)-1], `,"shards":[1,2]}`...)); err != nil {
		t.Error(err)
	}
	for name, tt := range map[string]struct{ subject, text string }{
		"for another":    {"ommer.load.w2", string(b)},
		"no JSON":        {"ommer.load.w1", "ready"},
		"unknown state":  {"ommer.load.w1", `{"worker":"w1","network":"mainnet","state":"fine"}`},
		"no network":     {"ommer.load.w1", `{"worker":"w1","state":"ready"}`},
		"odd worker":     {"ommer.load.w.1", `{"worker":"w.1","network":"mainnet","state":"ready"}`},
		"long":           {"ommer.load.w1", strings.Repeat(" ", maxLoad) + string(b)},
		"negative":       {"ommer.load.w1", `{"worker":"w1","network":"mainnet","state":"ready","in_flight":-1}`},
		"another's type": {"ommer.load.w1", `[]`},
	} {
		if l, err := parseLoad(tt.subject, []byte(tt.text)); err == nil {
			t.Errorf("%s: got %+v", name, l)
		}
	}
}
