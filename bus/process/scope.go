package process

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Scope is what an Admin shows of one of the networks that a process is for.
type Scope struct {
	// Registerer takes the metrics of the network. Each gets the label network.
	Registerer prometheus.Registerer

	admin  *Admin
	name   string
	checks []Check
	pages  map[string]http.Handler // by pattern
}

// Scope returns that of a network, the same for the same name: the edge and the worker of
// a process share it. To be called before Run.
func (a *Admin) Scope(network string) *Scope {
	if s := a.scope(network); s != nil {
		return s
	}
	s := &Scope{
		Registerer: prometheus.WrapRegistererWith(prometheus.Labels{"network": network}, a.Registry),
		admin:      a, name: network, pages: map[string]http.Handler{},
	}
	a.scopes = append(a.scopes, s)
	return s
}

func (a *Admin) scope(network string) *Scope {
	i := slices.IndexFunc(a.scopes, func(s *Scope) bool { return s.name == network })
	if i < 0 {
		return nil
	}
	return a.scopes[i]
}

// asked returns the Scope that ?network= names, the first without it. If there is none it
// answers 404.
func (a *Admin) asked(w http.ResponseWriter, r *http.Request) *Scope {
	var s *Scope
	if q := r.URL.Query(); q.Has("network") {
		s = a.scope(q.Get("network"))
	} else if len(a.scopes) > 0 {
		s = a.scopes[0]
	}
	if s == nil {
		http.Error(w, "no such network in this process", http.StatusNotFound)
	}
	return s
}

// Check adds a condition of the network's readiness.
func (s *Scope) Check(name string, f func() error) { s.checks = append(s.checks, Check{name, f}) }

// Handle adds a page of the network: who asks for it says which with ?network=NAME, and
// gets that of the first without.
func (s *Scope) Handle(pattern string, h http.Handler) {
	a := s.admin
	first := !slices.ContainsFunc(a.scopes, func(o *Scope) bool { return o.pages[pattern] != nil })
	s.pages[pattern] = h
	if !first {
		return
	}
	a.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := a.asked(w, r)
		if s == nil {
			return
		}
		page := s.pages[pattern]
		if page == nil { // an edge of a network whose workers are elsewhere
			http.NotFound(w, r)
			return
		}
		page.ServeHTTP(w, r)
	}))
}
