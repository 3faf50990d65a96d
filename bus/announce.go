package bus

import (
	"encoding/json"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// weight is that of the last LoadInterval in Load.ServiceTime: half of the mean is of
// the last half second.
const weight = 0.25

// mean is an exponentially weighted mean over intervals, of what only grows.
type mean struct {
	seconds float64 // spent so far
	count   uint64  // of answers so far
	value   float64 // seconds per answer
}

// add takes what there is at the end of an interval.
func (m *mean) add(seconds float64, count uint64) {
	if n := count - m.count; n > 0 {
		last := (seconds - m.seconds) / float64(n)
		if m.count == 0 {
			m.value = last
		}
		m.value += weight * (last - m.value)
	}
	m.seconds, m.count = seconds, count
}

// observe takes the answers since the last call into the mean.
func (s *Server) observe() {
	seconds, count := s.metrics.answers()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mean.add(seconds, count)
}

// answers is how long all answers have taken together, and how many there were.
func (m *serverMetrics) answers() (seconds float64, count uint64) {
	var d dto.Metric
	_ = m.seconds.Write(&d) // a histogram's returns nil
	return d.GetHistogram().GetSampleSum(), d.GetHistogram().GetSampleCount()
}

// announce says on every link what the worker is up to: by that edges also know which
// of their links are alive.
func (s *Server) announce() {
	if s.cfg.WorkerID == "" {
		return
	}
	load := s.load()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		load.Home = l == s.home
		b, err := json.Marshal(load)
		if err != nil {
			s.log.Error("announcement cannot be written", "reason", err)
			return
		}
		l.say(b)
	}
}

func (s *Server) load() Load {
	load := Load{
		Worker: s.cfg.WorkerID, Instance: s.instance, Network: s.cfg.Network, Zone: s.cfg.Zone,
		State: s.state(), InFlight: max(0, s.InFlight()), MaxInFlight: s.cfg.MaxInFlight, Version: s.cfg.Version,
	}
	_, load.Answered = s.metrics.answers()
	s.mu.Lock()
	defer s.mu.Unlock()
	load.Epoch = s.epoch
	load.ServiceTime = time.Duration(s.mean.value * float64(time.Second))
	return load
}

func (s *Server) state() State {
	if s.leaving.Load() {
		return Leaving
	}
	if s.cfg.Ready != nil && s.cfg.Ready() != nil {
		return Unready
	}
	return Ready
}

// grow says that questions may have been lost.
func (s *Server) grow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
}
