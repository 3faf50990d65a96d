package bus

import (
	"encoding/json"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/ommer/ommer/schema"
)

// Each worker shows itself as a NATS micro service, so that the nats command finds and
// watches it (nats micro ls, info, stats):
//
//	$SRV.PING|INFO|STATS
//	$SRV.PING|INFO|STATS.ommer-lookup
//	$SRV.PING|INFO|STATS.ommer-lookup.<instance>
//
// Package micro gives the schemas of the answers and not the service: its endpoints
// count a request as done when its handler returns, and its Stop does not wait for
// answers. The worker subscribes to these subjects at its home, as to its own questions.

const (
	serviceName = "ommer-lookup"
	endpoint    = "lookup"
	// maxReports is how many requests of this kind a worker answers per LoadInterval.
	// More are not answered: they are not to take what questions need.
	maxReports = 50
)

var semVer = regexp.MustCompile(`^v?((?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?)$`)

// serviceVersion is a version of the program in the form that the schemas ask for.
func serviceVersion(v string) string {
	if m := semVer.FindStringSubmatch(v); m != nil {
		return m[1]
	}
	return "0.0.0"
}

// service counts what it may still answer.
type service struct{ left atomic.Int32 }

func (v *service) refill() { v.left.Store(maxReports) }

// listen subscribes to the requests of the protocol. The caller holds Server.mu, or is
// alone.
func (v *service) listen(s *Server, l *serverLink) error {
	v.refill()
	for verb, report := range map[micro.Verb]func() any{
		micro.PingVerb:  func() any { return micro.Ping{ServiceIdentity: s.identity(), Type: micro.PingResponseType} },
		micro.InfoVerb:  func() any { return s.info() },
		micro.StatsVerb: func() any { return s.stats() },
	} {
		for _, to := range [][2]string{{}, {serviceName}, {serviceName, s.instance}} {
			subject, err := micro.ControlSubject(verb, to[0], to[1])
			if err != nil {
				return err
			}
			err = l.subscribe(own, subject, "", maxSmall, func(m *nats.Msg) {
				if isReply(m.Reply) && v.left.Add(-1) >= 0 {
					s.report(l, m.Reply, report())
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) report(l *serverLink, to string, what any) {
	b, err := json.Marshal(what)
	if err != nil { // of ServerConfig.Figures
		s.log.Error("statistics cannot be written", "reason", err)
		return
	}
	_ = l.nc.Publish(to, b) // an error means that the connection is lost
}

func (s *Server) identity() micro.ServiceIdentity {
	metadata := map[string]string{"worker": s.cfg.WorkerID, "network": s.cfg.Network, "instance": s.instance}
	if s.cfg.Zone != "" {
		metadata["zone"] = s.cfg.Zone
	}
	if s.cfg.Version != "" {
		metadata["version"] = s.cfg.Version
	}
	return micro.ServiceIdentity{Name: serviceName, ID: s.instance, Version: serviceVersion(s.cfg.Version), Metadata: metadata}
}

func (s *Server) info() micro.Info {
	return micro.Info{
		ServiceIdentity: s.identity(), Type: micro.InfoResponseType,
		Description: "answers the uncle lookups of " + s.cfg.Network,
		Endpoints:   []micro.EndpointInfo{{Name: endpoint, Subject: questionSubjects(s.cfg.Network), QueueGroup: queue}},
	}
}

// figures are what is shown of an endpoint beside what every service has.
type figures struct {
	State       State             `json:"state"`
	Epoch       uint64            `json:"epoch"`
	Answered    uint64            `json:"answered"`
	ServiceTime time.Duration     `json:"service_ns"`
	InFlight    int               `json:"in_flight"`
	MaxInFlight int               `json:"max_in_flight"`
	Outcomes    map[string]uint64 `json:"outcomes"`
	Resolver    any               `json:"resolver,omitempty"`
}

func (s *Server) stats() micro.Stats {
	seconds, answered := s.metrics.answers()
	load := s.load()
	f := figures{
		State: load.State, Epoch: load.Epoch, Answered: answered, ServiceTime: load.ServiceTime,
		InFlight: load.InFlight, MaxInFlight: load.MaxInFlight, Outcomes: s.metrics.outcomes(),
	}
	if s.cfg.Figures != nil {
		f.Resolver = s.cfg.Figures()
	}
	e := &micro.EndpointStats{
		Name: endpoint, Subject: questionSubjects(s.cfg.Network), QueueGroup: queue,
		LastError:      s.failures.last(),
		ProcessingTime: time.Duration(seconds * float64(time.Second)),
	}
	for name, n := range f.Outcomes {
		e.NumRequests += int(n)
		if name != schema.OK.String() {
			e.NumErrors += int(n)
		}
	}
	if answered > 0 {
		e.AverageProcessingTime = e.ProcessingTime / time.Duration(answered)
	}
	var err error
	if e.Data, err = json.Marshal(f); err != nil {
		s.log.Error("statistics cannot be written", "reason", err)
	}
	return micro.Stats{
		ServiceIdentity: s.identity(), Type: micro.StatsResponseType, Started: s.started.UTC(),
		Endpoints: []*micro.EndpointStats{e},
	}
}

// outcomes is what came of the questions, those that there were.
func (m *serverMetrics) outcomes() map[string]uint64 {
	all := map[string]uint64{}
	add := func(name string, c prometheus.Counter) {
		var d dto.Metric
		_ = c.Write(&d) // a counter's returns nil
		if n := uint64(d.GetCounter().GetValue()); n > 0 {
			all[name] = n
		}
	}
	for code, c := range m.byCode {
		add(schema.Code(code).String(), c)
	}
	for name, c := range m.other {
		add(name, c)
	}
	return all
}
