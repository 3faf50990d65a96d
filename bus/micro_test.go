package bus_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
)

// service asks for something of the micro protocol and reads the answer.
func service[T any](t *testing.T, nc *nats.Conn, subject string) (answer T) {
	t.Helper()
	m, err := nc.Request(subject, nil, patience)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		t.Errorf("%s: %v", subject, err)
	}
	return answer
}

func TestService(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	fixed := schematest.NewFixed(known)
	t.Cleanup(fixed.Stop)
	s := newServer(t, bus.ServerConfig{
		Links: []*bus.Link{dial(t, "w", srv.URL()), dial(t, "w", srv.URL())}, Resolver: fixed,
		WorkerID: "w1", Version: "v1.2.3", MaxInFlight: 2, Zone: "z1",
		Figures: func() any { return map[string]int{"cache_entries": 5} },
	})
	leaveAtEnd(t, s)
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	for range 10 {
		ask(t, c, byNumber, patience).want(schema.OK)
	}
	fixed.Hold()
	held := []*one{ask(t, c, byNumber, patience), ask(t, c, byNumber, patience)}
	eventually(t, "they are held", func() bool { return s.InFlight() == 2 })
	ask(t, c, byNumber, patience).want(schema.Overloaded)

	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ping := service[micro.Ping](t, nc, "$SRV.PING")
	if ping.Name != "ommer-lookup" || ping.Version != "1.2.3" || ping.Type != micro.PingResponseType || ping.ID == "" ||
		ping.Metadata["worker"] != "w1" || ping.Metadata["network"] != network || ping.Metadata["zone"] != "z1" {
		t.Errorf("got %+v", ping)
	}
	for _, to := range []string{"", ".ommer-lookup", ".ommer-lookup." + ping.ID} {
		if got := service[micro.Ping](t, nc, "$SRV.PING"+to); got.ID != ping.ID {
			t.Errorf("%q: got %+v", to, got)
		}
		info := service[micro.Info](t, nc, "$SRV.INFO"+to)
		if info.Type != micro.InfoResponseType || len(info.Endpoints) != 1 || info.Endpoints[0].Subject != "ommer.v1."+network+".*" {
			t.Errorf("%q: got %+v", to, info)
		}
		stats := service[micro.Stats](t, nc, "$SRV.STATS"+to)
		if stats.Type != micro.StatsResponseType || len(stats.Endpoints) != 1 || time.Since(stats.Started) > patience {
			t.Fatalf("%q: got %+v", to, stats)
		}
		e := stats.Endpoints[0]
		// The refused one was asked again.
		if e.NumRequests != 12 || e.NumErrors != 2 || e.ProcessingTime <= 0 || e.AverageProcessingTime != e.ProcessingTime/10 {
			t.Errorf("%q: got %+v", to, e)
		}
		var data struct {
			Answered    int            `json:"answered"`
			InFlight    int            `json:"in_flight"`
			MaxInFlight int            `json:"max_in_flight"`
			Outcomes    map[string]int `json:"outcomes"`
			Resolver    map[string]int `json:"resolver"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		if data.Answered != 10 || data.InFlight != 2 || data.MaxInFlight != 2 || data.Outcomes["ok"] != 10 ||
			data.Outcomes["overloaded"] != 2 || data.Resolver["cache_entries"] != 5 {
			t.Errorf("%q: got %+v", to, data)
		}
	}
	fixed.Release()
	for _, o := range held {
		o.want(schema.OK)
	}
}

// Who asks for statistics without end gets some, and questions are answered.
func TestServiceIsBounded(t *testing.T) {
	t.Parallel()
	srv := startNATS(t, embedded.Config{})
	newFixedServer(t, srv.URL(), nil)
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	const asked = 5000
	answers := make(chan *nats.Msg, asked)
	if _, err := nc.ChanSubscribe("_INBOX.stats", answers); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range asked {
		if err := nc.PublishRequest("$SRV.STATS", "_INBOX.stats", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := direct(nc, patience); err != nil { // the same link, after all that
		t.Error(err)
	}
	// What comes after them on the same subject: they have been dealt with.
	eventually(t, "it reports again", func() bool { _, err := nc.Request("$SRV.STATS", nil, bus.LoadInterval); return err == nil })
	intervals := int(time.Since(began)/bus.LoadInterval) + 2
	if n := len(answers); n < 1 || n > 50*intervals {
		t.Errorf("%d reports in %d intervals", n, intervals)
	}
	written, err := nc.SubscribeSync("$KV.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("$SRV.PING", "$KV.ommer_keys.x", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it reports again", func() bool { _, err := nc.Request("$SRV.PING", nil, bus.LoadInterval); return err == nil })
	if n, _, err := written.Pending(); n != 0 || err != nil {
		t.Errorf("%d messages were written to the keys, %v", n, err)
	}
}

// A failure is logged the first time, and not again for a while.
func TestFailuresAreLogged(t *testing.T) {
	for _, c := range []struct {
		level slog.Level
		want  int
	}{{slog.LevelWarn, 2}, {slog.LevelDebug, 22}} {
		t.Run(c.level.String(), func(t *testing.T) {
			srv := startNATS(t, embedded.Config{})
			var log logBuffer
			leaveAtEnd(t, newServer(t, bus.ServerConfig{
				Links: []*bus.Link{dial(t, "w", srv.URL())}, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: c.level})),
				Resolver: resolverFunc(func(q schema.Question, _ time.Time, to schema.Receiver) {
					code := schema.Internal
					if q == byHash {
						code = schema.Pruned
					}
					to.Answered(schema.Answer{Err: &schema.Error{Code: code, Detail: "node 2 says no"}})
				}),
			}))
			c2 := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
			for range 10 {
				ask(t, c2, byNumber, patience).want(schema.Internal)
				ask(t, c2, byHash, patience).want(schema.Pruned)
			}
			if got := strings.Count(log.String(), "node 2 says no"); got != c.want {
				t.Errorf("logged %d times, want %d:\n%s", got, c.want, &log)
			}
		})
	}
}
