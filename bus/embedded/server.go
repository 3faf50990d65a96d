package embedded

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Limits of the embedded server.
const (
	// maxPayload bounds a message. A question is 54 bytes, an uncle 1.5 KB, a key's
	// record 4 KiB.
	maxPayload = 1 << 20
	// maxPending bounds what waits for one client that does not read; beyond it
	// the client is dropped.
	maxPending = 64 << 20
	// maxConn bounds the connections.
	maxConn = 1024
	// maxStore and maxMemory bound JetStream.
	maxStore  = 8 << 30
	maxMemory = 64 << 20
	// syncInterval is how much of the store a power cut can take back. Who needs
	// every write kept runs a cluster with replicas.
	syncInterval = 10 * time.Second
	// writeDeadline is how long a client may not read.
	writeDeadline = 5 * time.Second
	// DefaultStartTimeout bounds the start, the reading of the store included.
	DefaultStartTimeout = 30 * time.Second
)

// Errors of this package.
var (
	// ErrStore: the folder of the store cannot be used; the text names it.
	ErrStore = errors.New("embedded NATS store")
	// ErrStart: the server did not come up.
	ErrStart = errors.New("embedded NATS server")
)

// Config says how to run the server.
type Config struct {
	// Name is shown to clients and must differ within a cluster. Empty lets the
	// server choose.
	Name string
	// Addr is the host and port to listen on. Empty means 127.0.0.1 and any port.
	Addr string
	// Dir is the folder of the JetStream store, made when missing. Empty means no
	// JetStream.
	Dir string
	// Cluster makes the server a member of a cluster. The zero value does not.
	Cluster Cluster
	// Leaf joins the server to another's cluster. Without URLs it does not.
	Leaf Leaf
	// StartTimeout is 0 for DefaultStartTimeout.
	StartTimeout time.Duration
	// Logger gets what the server logs. Nil logs nothing.
	Logger *slog.Logger
}

// Cluster names the other servers of a cluster.
type Cluster struct {
	Name   string
	Addr   string   // host and port to listen on for routes
	Routes []string // nats://host:port of other members
}

// Server is a running NATS server.
type Server struct {
	srv     *server.Server
	started chan struct{} // closed when Start has returned
	lock    io.Closer
	log     *logger
}

// New starts a server and returns when it takes connections.
func New(cfg Config) (*Server, error) {
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = DefaultStartTimeout
	}
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	s := &Server{log: newLogger(cfg.Logger), started: make(chan struct{})}
	if cfg.Dir != "" {
		if s.lock, err = lockDir(cfg.Dir); err != nil {
			return nil, err
		}
	}
	if s.srv, err = server.NewServer(opts); err != nil {
		s.unlock()
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	s.srv.SetLoggerV2(s.log, false, false, false)
	if err := s.start(cfg.StartTimeout); err != nil {
		s.Close()
		if cfg.Dir != "" {
			err = fmt.Errorf("%w (store %s)", err, cfg.Dir)
		}
		return nil, err
	}
	return s, nil
}

func (s *Server) start(timeout time.Duration) error {
	began := time.Now()
	go func() { // Close waits for it
		defer close(s.started)
		s.srv.Start() // returns when the store was read
	}()
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	select {
	case <-s.started:
	case <-limit.C:
		return fmt.Errorf("%w: not started within %v", ErrStart, timeout)
	}
	// The listener comes up beside Start.
	for !s.srv.ReadyForConnections(time.Millisecond) {
		if text := s.log.fatal(); text != "" {
			return fmt.Errorf("%w: %s", ErrStart, text)
		}
		if time.Since(began) > timeout {
			return fmt.Errorf("%w: takes no connections after %v", ErrStart, timeout)
		}
		pause := time.NewTimer(2 * time.Millisecond)
		<-pause.C
	}
	if text := s.log.fatal(); text != "" {
		return fmt.Errorf("%w: %s", ErrStart, text)
	}
	return nil
}

// URL is where clients connect to.
func (s *Server) URL() string { return s.srv.ClientURL() }

// Close stops the server, writes out the store and waits for both.
func (s *Server) Close() {
	s.srv.Shutdown()
	<-s.started
	s.srv.WaitForShutdown()
	s.unlock()
}

func (s *Server) unlock() {
	if s.lock != nil {
		_ = s.lock.Close() // closing drops the lock whatever it returns
		s.lock = nil
	}
}

func (cfg Config) options() (*server.Options, error) {
	o := &server.Options{
		ServerName:             cfg.Name,
		Host:                   "127.0.0.1",
		Port:                   server.RANDOM_PORT,
		NoSigs:                 true,
		MaxConn:                maxConn,
		MaxPayload:             maxPayload,
		MaxPending:             maxPending,
		WriteDeadline:          writeDeadline,
		DisableJetStreamBanner: true,
		JetStream:              cfg.Dir != "",
		StoreDir:               cfg.Dir,
		JetStreamMaxMemory:     maxMemory,
		JetStreamMaxStore:      maxStore,
		SyncInterval:           syncInterval,
	}
	var err error
	if cfg.Addr != "" {
		if o.Host, o.Port, err = hostPort("Addr", cfg.Addr); err != nil {
			return nil, err
		}
	}
	if len(cfg.Leaf.URLs) > 0 {
		if err := cfg.Leaf.apply(o); err != nil {
			return nil, err
		}
	}
	if cfg.Cluster.Name == "" {
		return o, nil
	}
	o.Cluster.Name = cfg.Cluster.Name
	if o.Cluster.Host, o.Cluster.Port, err = hostPort("Cluster.Addr", cfg.Cluster.Addr); err != nil {
		return nil, err
	}
	for _, r := range cfg.Cluster.Routes {
		u, err := url.Parse(r)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%w: Cluster.Routes: not a URL like nats://host:6222", ErrStart)
		}
		o.Routes = append(o.Routes, u)
	}
	return o, nil
}

// hostPort splits an address; port 0 means any.
func hostPort(field, addr string) (string, int, error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %s: %w", ErrStart, field, err)
	}
	port, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %s: port %q is not a number up to 65535", ErrStart, field, p)
	}
	if port == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(port), nil
}
