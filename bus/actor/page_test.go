package actor

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// page asks a system for its page.
func page(s *System, query, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/actors"+query, nil)
	r.Header.Set("Accept", accept)
	rec := httptest.NewRecorder()
	Page{s}.ServeHTTP(rec, r)
	return rec
}

// TestPage: a crash is seen in both formats.
func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, Config{Name: "letters", Runners: 2, Logger: slog.New(slog.DiscardHandler)})
		f := &fickle{t: t, on: map[string]func(){"bad": boom}}
		r := f.spawn(s, Options{Name: "a", Mailbox: 7, Reserved: 2})
		spawn(t, s, Options{Name: "other"}, receive[int](func(int) {}))
		tell(t, r, failed{name: "good", to: nil}, failed{name: "bad", to: make(chan string, 1)})
		synctest.Wait()
		tell(t, r, failed{name: "good", to: nil})

		rec := page(s, "", "*/*")
		var got []SystemInfo
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Header().Get("Content-Type") != "application/json" {
			t.Fatal(err, rec.Header())
		}
		want := []SystemInfo{{Name: "letters", State: "running", Runners: 2, Actors: []Info{
			{
				Name: "a", State: "restarting", Mailbox: 1, MailboxCap: 9, Reserved: 2, Received: 2, Crashes: 1,
				LastFailure: "actor: panic: boom", LastFailureAt: time.Now().UTC(), DeadLetters: DeadLetters{Panic: 1},
			},
			{Name: "other", State: "idle", MailboxCap: DefaultMailbox},
		}}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if n := strings.Count(rec.Body.String(), "last_failure_at"); n != 1 {
			t.Errorf("%d times of failures, want 1, of the actor that failed: %s", n, rec.Body)
		}

		time.Sleep(firstPause)
		synctest.Wait()
		const tree = `letters: running, 2 runners, 0 queued
   ACTOR  STATE  MAILBOX  RECEIVED  REFUSED  DEAD  CRASHES  RESTARTS  LAST FAILURE
├─ a      idle   0/9      3         0        1     1        1         2000-01-01T00:00:00Z actor: panic: boom
└─ other  idle   0/1024   0         0        0     0        0         none
`
		rec = page(s, "?format=text", "")
		if got := rec.Body.String(); got != tree || rec.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s, got\n%swant\n%s", rec.Header(), got, tree)
		}
	})
}

func TestPageFormat(t *testing.T) {
	s := newSystem(t, Config{})
	for _, tt := range []struct{ query, accept, want string }{
		{"", "", "application/json"},
		{"", "*/*", "application/json"},
		{"", "text/plain", "text/plain; charset=utf-8"},
		{"", "text/plain;q=0.9, */*;q=0.1", "text/plain; charset=utf-8"},
		{"", "text/html,application/xhtml+xml,*/*;q=0.8", "application/json"},
		{"", "application/json, text/plain", "application/json"},
		{"", ";", "application/json"},
		{"?format=json", "text/plain", "application/json"},
		{"?format=text", "application/json", "text/plain; charset=utf-8"},
	} {
		if rec := page(s, tt.query, tt.accept); rec.Code != 200 || rec.Header().Get("Content-Type") != tt.want {
			t.Errorf("%q, Accept %q: %d %s, want %s", tt.query, tt.accept, rec.Code, rec.Header().Get("Content-Type"), tt.want)
		}
	}
	if rec := page(s, "?format=xml", ""); rec.Code != 400 {
		t.Errorf("format=xml: %d, want 400", rec.Code)
	}
	if got := page(s, "", "").Body.String(); !regexp.MustCompile(`"actors": \[\]`).MatchString(got) {
		t.Errorf("no list of actors where there is none: %s", got)
	}
}

// TestSystemStates: the page says that a system stops, and has stopped.
func TestSystemStates(t *testing.T) {
	s := newSystem(t, Config{})
	held, release := make(chan struct{}), make(chan struct{})
	spawn(t, s, Options{Name: "a"}, &hold{held, release, make(chan string, 1)})
	stopped := make(chan error)
	go func() { stopped <- s.Stop(t.Context()) }()
	<-held
	if i := s.Info(); i.State != "stopping" || len(i.Actors) != 1 || i.Actors[0].State != "stopping" {
		t.Errorf("during the stop: %+v", i)
	}
	close(release)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if i := s.Info(); i.State != "stopped" || len(i.Actors) != 0 {
		t.Errorf("after the stop: %+v", i)
	}
}

// TestReason: what is shown of a failure is one line of bounded length, whatever
// was panicked with.
func TestReason(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"short", "short"},
		{"two\nlines\tand \x1b[31mred\u2028", "two lines and  [31mred "},
		{strings.Repeat("x", maxReason), strings.Repeat("x", maxReason)},
		{strings.Repeat("x", 1<<20), strings.Repeat("x", maxReason-3) + "..."},
		{strings.Repeat("€", 1<<10), strings.Repeat("€", (maxReason-3)/3) + "..."},
	} {
		got := reason(errors.New(tt.in))
		if got != tt.want || !utf8.ValidString(got) {
			t.Errorf("reason of %.40q = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestReasonIsNotKept: what was panicked with may change afterwards, while
// somebody looks at the actors.
func TestReasonIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, Config{Logger: slog.New(slog.DiscardHandler)})
		value := &struct{ N int }{1}
		f := &fickle{t: t, on: map[string]func(){"bad": func() { panic(value) }}}
		r := f.spawn(s, Options{Name: "a"})
		tell(t, r, failed{name: "bad", to: make(chan string, 1)})
		synctest.Wait()
		value.N = 2
		if got, want := r.Stats().LastFailure, "actor: panic: &{1}"; got != want {
			t.Errorf("LastFailure = %q, want %q", got, want)
		}
	})
}
