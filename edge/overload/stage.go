package overload

import "time"

// Stage says what is shed. Each stage includes those before it.
type Stage uint32

// The stages.
const (
	// Normal: nothing is shed.
	Normal Stage = iota
	// NoKeepAlive: HTTP connections end with their next answer, and those that have
	// been idle for long end now.
	NoKeepAlive
	// RefuseConns: new connections are closed.
	RefuseConns
	// RefuseRequests: what is asked from now on is refused.
	RefuseRequests
)

var stageNames = [...]string{"normal", "no keep-alive", "refuse connections", "refuse requests"}

// String names the stage.
func (s Stage) String() string { return stageNames[s] }

// resource is what can be short.
type resource int

const (
	memory resource = iota
	delay
	resources
)

var resourceNames = [resources]string{"memory", "delay"}

// pressure is how much of each resource's limit is taken, 1 for all of it.
type pressure [resources]float64

// thresholds are the pressures from which on a stage is entered. A delay has no use for
// NoKeepAlive alone: who has to connect again costs a TLS handshake, as much as many
// requests, unless he is refused before it.
var thresholds = [RefuseRequests + 1]pressure{
	NoKeepAlive:    {memory: 0.85, delay: 0.5},
	RefuseConns:    {memory: 0.90, delay: 0.5},
	RefuseRequests: {memory: 0.95, delay: 1},
}

// A stage is left for the one below it when every pressure has been below this part of
// its threshold for that long.
const (
	leaveBelow = 0.9
	leaveAfter = 2 * time.Second
)

// ladder is the stage, and what is needed to change it.
type ladder struct {
	stage Stage
	calm  time.Time // since when the stage could be left; zero: it cannot
}

// step takes the pressure of now and returns the stage.
func (l *ladder) step(now time.Time, p pressure) Stage {
	for s := RefuseRequests; s > l.stage; s-- {
		if p.reaches(thresholds[s], 1) {
			*l = ladder{stage: s}
			return s
		}
	}
	switch {
	case l.stage == Normal:
	case p.reaches(thresholds[l.stage], leaveBelow):
		l.calm = time.Time{}
	case l.calm.IsZero():
		l.calm = now
	case now.Sub(l.calm) >= leaveAfter:
		*l = ladder{stage: l.stage - 1}
	}
	return l.stage
}

// reaches says whether a pressure is at least the part of its threshold.
func (p pressure) reaches(threshold pressure, part float64) bool {
	for r := range p {
		if p[r] >= threshold[r]*part {
			return true
		}
	}
	return false
}
