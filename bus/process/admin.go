package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check says what of the process is not ready, nil when all is well. It is
// called for each request of /readyz and must not block.
type Check struct {
	Name string
	Func func() error
}

// Admin is the operator's listener: liveness, readiness, metrics, profiles.
type Admin struct {
	Registry *prometheus.Registry

	log      *slog.Logger
	ln       net.Listener // nil: there is none
	mux      *http.ServeMux
	checks   []Check
	scopes   []*Scope
	stopping atomic.Bool
}

// NewAdmin binds addr; an empty one means no listener. Add to the mux and to the
// checks before Run.
func NewAdmin(addr Addr, log *slog.Logger) (*Admin, error) {
	a := &Admin{Registry: prometheus.NewRegistry(), log: log, mux: http.NewServeMux()}
	a.Registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(),
	)
	a.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	a.mux.HandleFunc("GET /readyz", a.readyz)
	a.mux.Handle("GET /metrics", promhttp.HandlerFor(a.Registry, promhttp.HandlerOpts{}))
	a.mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	a.mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	a.mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	if addr == "" {
		return a, nil
	}
	ln, err := net.Listen("tcp", string(addr))
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	a.ln = ln
	return a, nil
}

// Addr is where the listener is, empty when there is none.
func (a *Admin) Addr() string {
	if a.ln == nil {
		return ""
	}
	return a.ln.Addr().String()
}

// Handle adds a page.
func (a *Admin) Handle(pattern string, h http.Handler) { a.mux.Handle(pattern, h) }

// Check adds a condition of readiness, of the process as a whole. Those of a network are
// its Scope's.
func (a *Admin) Check(name string, f func() error) { a.checks = append(a.checks, Check{name, f}) }

// Stopping makes /readyz say no from now on, so that balancers look elsewhere
// while the process still answers.
func (a *Admin) Stopping() { a.stopping.Store(true) }

// Run serves until ctx ends.
func (a *Admin) Run(ctx context.Context) error {
	if a.ln == nil {
		<-ctx.Done()
		return nil
	}
	s := &http.Server{
		Handler:           a.mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      2 * time.Minute, // longer than a profile
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	stopped := context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if s.Shutdown(end) != nil {
			_ = s.Close()
		}
	})
	defer stopped()
	if err := s.Serve(a.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin listener: %w", err)
	}
	return nil
}

// readyz answers 200 only when every check passes, and those of one network at least: one
// that cannot be served must not take the others from callers. The body names each check.
// With ?network=NAME it is about that network alone.
func (a *Admin) readyz(w http.ResponseWriter, r *http.Request) {
	asked := a.scopes
	if r.URL.Query().Has("network") {
		s := a.asked(w, r)
		if s == nil {
			return
		}
		asked = []*Scope{s}
	}
	status, body := http.StatusOK, map[string]string{}
	check := func(prefix string, all []Check) (ok bool) {
		ok = true
		for _, c := range all {
			body[prefix+c.Name] = "ok"
			if err := c.Func(); err != nil {
				ok, body[prefix+c.Name] = false, err.Error()
			}
		}
		return ok
	}
	ok := check("", a.checks)
	some := len(asked) == 0
	for _, s := range asked {
		prefix := ""
		if len(a.scopes) > 1 {
			prefix = s.name + "."
		}
		some = check(prefix, s.checks) || some
	}
	if !ok || !some {
		status = http.StatusServiceUnavailable
	}
	if a.stopping.Load() {
		status, body["process"] = http.StatusServiceUnavailable, "stopping"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func buildInfo() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ommer_build_info", Help: "Always 1; the label says what was built.",
		ConstLabels: prometheus.Labels{"version": Version()},
	}, func() float64 { return 1 })
}
