package bus_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema/schematest"
)

// A worker that connects as somebody else's user finds out, for nobody would ask it and
// it would wait for ever.
func TestWorkerOfTheWrongUser(t *testing.T) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		Users: []*server.User{{Username: "w1", Password: "secret", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"_R.>", "ommer.load.w1"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"ommer.v1.>", "ommer.w.w1.>", "ommer.load.w1", "_R.>"}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("no connections")
	}
	url := strings.Replace(s.ClientURL(), "nats://", "nats://w1:secret@", 1)
	fixed := schematest.NewFixed(known)
	t.Cleanup(fixed.Stop)
	start := func(name string) (*bus.Server, *logBuffer) {
		var log logBuffer
		l, err := bus.Dial(bus.LinkConfig{Name: name, URLs: []string{url}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		w := newServer(t, bus.ServerConfig{Links: []*bus.Link{l}, Resolver: fixed, WorkerID: name})
		leaveAtEnd(t, w)
		return w, &log
	}
	other, log := start("w2")
	eventually(t, "it says what is missing", func() bool {
		m := other.Missing()
		return strings.Contains(m, "refuses") && strings.Contains(m, "w2")
	})
	if strings.Contains(log.String()+other.Missing(), "secret") {
		t.Error("the password is shown")
	}
	own, log := start("w1") // may not be seen as a service, and lives without
	eventually(t, "the log says so", func() bool { return strings.Contains(log.String(), "$SRV") })
	if m := own.Missing(); m != "" {
		t.Errorf("the right user: %s", m)
	}
}

func TestTwoWorkersOfOneName(t *testing.T) {
	t.Parallel()
	srv := startNATS(t, embedded.Config{})
	fixed := schematest.NewFixed(known)
	t.Cleanup(fixed.Stop)
	var log logBuffer
	leaveAtEnd(t, newServer(t, bus.ServerConfig{
		Links: []*bus.Link{dial(t, "w", srv.URL())}, Resolver: fixed, WorkerID: "w1", Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}))
	leaveAtEnd(t, newServer(t, bus.ServerConfig{Links: []*bus.Link{dial(t, "w", srv.URL())}, Resolver: fixed, WorkerID: "w1"}))
	eventually(t, "the first one says so", func() bool { return strings.Contains(log.String(), "another worker has the name") })
}
