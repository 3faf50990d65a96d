package keys_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/schema"
)

// restrictive allows less than most.
var restrictive = keys.Settings{
	Rate: 1, Burst: 2,
	Origins:  []string{"https://a.example", "https://*.b.example"},
	Networks: []string{"sepolia"},
	Methods:  []string{schema.UncleByHash.String()},
}

func TestSettingsReachDirectories(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	admin := open(t, dial(t, "admin", srv.URL()))
	changed := make(chan *keys.Entry, 8)
	d := directory(t, keys.DirectoryConfig{Link: dial(t, "edge", srv.URL()), OnChange: func(e *keys.Entry) { changed <- e }})
	key, rec, err := admin.Create(t.Context(), "x", restrictive)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := admin.Get(t.Context(), "x"); err != nil || !reflect.DeepEqual(got, rec) || !reflect.DeepEqual(got.Settings, restrictive) {
		t.Errorf("got %+v, %v", got, err)
	}
	var e *keys.Entry
	eventually(t, "the key is known", func() bool { e = d.Lookup([]byte(key)); return e != nil })
	if _, ok := e.AllowsOrigin([]byte("https://c.example")); ok || e.AllowsNetwork("mainnet") || e.AllowsMethod(schema.UncleByNumber) {
		t.Error("the settings restrict nothing")
	}
	for i, want := range []bool{true, true, false} {
		if over, ok := e.Admit(); ok != want || !ok && (over.Rate != 1 || over.Wait <= 0) {
			t.Errorf("call %d: let in %v, %+v", i, ok, over)
		}
	}

	// Each change is felt by the entry that others hold.
	set := func(change func(*keys.Settings)) {
		t.Helper()
		if _, err := admin.Set(t.Context(), rec.ID, change); err != nil {
			t.Fatal(err)
		}
	}
	set(func(s *keys.Settings) { s.Rate, s.Burst = 0, 0 })
	eventually(t, "no rate", func() bool { _, ok := e.Admit(); return ok })
	set(func(s *keys.Settings) { s.Methods = nil })
	eventually(t, "every method", func() bool { return e.AllowsMethod(schema.UncleByNumber) })
	select {
	case <-changed:
		t.Error("rates and methods are announced")
	default:
	}
	set(func(s *keys.Settings) { s.Origins = []string{"*"} })
	if got := <-changed; got != e {
		t.Error("announced another entry")
	}
	if _, ok := e.AllowsOrigin(nil); !ok {
		t.Error("announced before the entry says so")
	}
	set(func(s *keys.Settings) { s.Networks = nil })
	if got := <-changed; got != e || !e.AllowsNetwork("mainnet") || e.Revoked() {
		t.Error("a change of networks was not announced")
	}
	if d.Lookup([]byte(key)) != e {
		t.Error("the key has another entry")
	}
	if _, err := admin.Revoke(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if got := <-changed; got != e || !e.Revoked() {
		t.Error("the end was not announced")
	}
}

func TestSetRefuses(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	r := open(t, dial(t, "admin", srv.URL()))
	_, rec := create(t, r, "x")
	long := make([]string, keys.MaxList)
	for i := range long {
		long[i] = fmt.Sprintf("https://%d%s.example", i, strings.Repeat("a", 200))
	}
	var bad *keys.SettingError
	for _, c := range []struct {
		name string
		s    keys.Settings
		want func(error) bool
	}{
		{"rate", keys.Settings{Rate: -1}, func(err error) bool { return errors.As(err, &bad) && bad.Setting == "rate" }},
		{"method", keys.Settings{Methods: []string{"eth_call"}}, func(err error) bool { return errors.As(err, &bad) && bad.Setting == "methods" }},
		{"size", keys.Settings{Origins: long}, func(err error) bool { return errors.Is(err, keys.ErrTooLarge) }},
	} {
		if _, err := r.Set(t.Context(), rec.ID, func(s *keys.Settings) { *s = c.s }); !c.want(err) {
			t.Errorf("%s: Set says %v", c.name, err)
		}
		if key, _, err := r.Create(t.Context(), "y", c.s); !c.want(err) || key != "" {
			t.Errorf("%s: Create says %v", c.name, err)
		}
	}
	if all, err := r.List(t.Context()); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], rec) {
		t.Errorf("what was refused has left %+v, %v", all, err)
	}
	if _, err := r.Set(t.Context(), "nobody", func(*keys.Settings) {}); !errors.Is(err, keys.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	if _, err := r.Revoke(t.Context(), rec.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Set(t.Context(), rec.ID, func(s *keys.Settings) { s.Rate = 1 }); !errors.Is(err, keys.ErrRevoked) {
		t.Errorf("revoked: %v", err)
	}
}

// TestLargestRecordCanBeRevoked: settings leave room for the end.
func TestLargestRecordCanBeRevoked(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	r := open(t, dial(t, "admin", srv.URL()))
	_, rec := create(t, r, "x")
	var err error
	for n := 1; err == nil; n++ {
		_, err = r.Set(t.Context(), rec.ID, func(s *keys.Settings) {
			s.Origins = make([]string, keys.MaxList)
			for i := range s.Origins {
				s.Origins[i] = "https://" + strings.Repeat("a", 117)
			}
			s.Origins[0] = "https://" + strings.Repeat("a", n)
		})
	}
	if !errors.Is(err, keys.ErrTooLarge) {
		t.Fatal(err)
	}
	if _, err := r.Revoke(t.Context(), rec.ID); err != nil {
		t.Error(err)
	}
}

// TestSetAgainstAnotherWriter: changes of different members at the same time are all
// made, and what a later version has written stays.
func TestSetAgainstAnotherWriter(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	l := dial(t, "admin", srv.URL())
	r := open(t, l)
	key, rec := create(t, r, "x")
	h := sha256.Sum256([]byte(key))
	record := fmt.Sprintf(`{"id":%q,"name":"x","state":"active","later":{"a":1}}`, rec.ID)
	if _, err := bucketOf(t, l).PutString(t.Context(), hex.EncodeToString(h[:]), record); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, change := range []func(*keys.Settings){
		func(s *keys.Settings) { s.Rate = 5 },
		func(s *keys.Settings) { s.Origins = []string{"*"} },
		func(s *keys.Settings) { s.Networks = []string{"n"} },
	} {
		wg.Go(func() {
			if _, err := r.Set(context.Background(), rec.ID, change); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := r.Get(t.Context(), rec.ID)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(&got)
	if want := fmt.Sprintf(`{"id":%q,"later":{"a":1},"name":"x","networks":["n"],"origins":["*"],"rate":5,"state":"active"}`, rec.ID); err != nil || string(out) != want {
		t.Errorf("got  %s %v\nwant %s", out, err, want)
	}
}

// TestSettingsThatCannotBeRead: a key whose restrictions are not understood is not
// good, and what is open under it is told.
func TestSettingsThatCannotBeRead(t *testing.T) {
	srv := startServer(t, embedded.Config{Dir: t.TempDir()})
	l := dial(t, "edge", srv.URL())
	r := open(t, l)
	changed := make(chan *keys.Entry, 1)
	d := directory(t, keys.DirectoryConfig{Link: l, OnChange: func(e *keys.Entry) { changed <- e }})
	key, rec := create(t, r, "x")
	var e *keys.Entry
	eventually(t, "known", func() bool { e = d.Lookup([]byte(key)); return e != nil })
	h := sha256.Sum256([]byte(key))
	record := fmt.Sprintf(`{"id":%q,"name":"x","state":"active","origins":{"allow":["https://a.example"]}}`, rec.ID)
	if _, err := bucketOf(t, l).PutString(t.Context(), hex.EncodeToString(h[:]), record); err != nil {
		t.Fatal(err)
	}
	if got := <-changed; got != e || !e.Revoked() || d.Lookup([]byte(key)) != nil {
		t.Error("the key is still good")
	}
}
