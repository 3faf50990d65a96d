package upstream

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

func TestShutter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shutter
		if left := s.left(time.Now()); left > 0 {
			t.Fatalf("shut for %v from the start", left)
		}
		// Without a word of the node the pauses double, up to a bound.
		for want := firstShut; want < 4*longestShut; want *= 2 {
			want := min(want, longestShut)
			if d, first := s.close(time.Now()); d != want || !first {
				t.Fatalf("pause of %v, first %v; want %v", d, first, want)
			}
			time.Sleep(want / 2)
			if d, first := s.close(time.Now()); d != want-want/2 || first {
				t.Fatalf("the refusal of one that was under way: pause of %v, first %v", d, first)
			}
			time.Sleep(want - want/2)
			if left := s.left(time.Now()); left > 0 {
				t.Fatalf("shut for %v more", left)
			}
		}
		s.open()
		if d, _ := s.close(time.Now()); d != firstShut {
			t.Errorf("pause of %v after an answer", d)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			status int
			value  string
			want   time.Duration
		}{
			{429, "7", 7 * time.Second},
			{503, "7", 7 * time.Second},
			{429, time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat), 9 * time.Second},
			{429, "86400", longestAsk},
			{429, "99999999999999999999", firstShut},
			{429, "-1", firstShut},
			{429, "0", firstShut},
			{429, "soon", firstShut},
			{429, "", firstShut},
			{500, "7", firstShut},
			{200, "7", firstShut},
		} {
			var s shutter
			s.told(&http.Response{StatusCode: tt.status, Header: http.Header{"Retry-After": {tt.value}}})
			if d, _ := s.close(time.Now()); d > tt.want || d < tt.want-time.Second {
				t.Errorf("status %d, Retry-After %q: pause of %v, want %v", tt.status, tt.value, d, tt.want)
			}
		}
	})
}

type said = *upstreamtest.Error

type dataError struct {
	said
	data any
}

func (e *dataError) ErrorData() any { return e.data }

// Errors of code -32005 may say in their data for how long a node is to be left alone.
func TestBackOff(t *testing.T) {
	object := func(v any) map[string]any { return map[string]any{"backoff_seconds": v, "allowed_rps": 1.0} }
	for _, tt := range []struct {
		data any
		want time.Duration
	}{
		{object(7.5), 7500 * time.Millisecond},
		{map[string]any{"rate": object(9.0)}, 9 * time.Second},
		{object(1e300), longestAsk},
		{object(0.0), firstShut},
		{object(-1.0), firstShut},
		{object("7"), firstShut},
		{map[string]any{"rate": "none"}, firstShut},
		{"slow down", firstShut},
		{nil, firstShut},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSet(t, Config{URLs: []string{"http://node.example"}})
			n := s.nodes[0]
			n.failed(n.scrub.callError(&dataError{&upstreamtest.Error{Code: -32005, Message: "limit exceeded"}, tt.data}))
			if got := n.shut.left(time.Now()); got != tt.want {
				t.Errorf("%v: left alone for %v, want %v", tt.data, got, tt.want)
			}
		})
	}
}
