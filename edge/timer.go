package edge

import (
	"time"

	"github.com/ommer/ommer/edge/ws"
)

// timer is what the connection's time-out stands for.
type timer uint8

const (
	timerNone timer = iota
	timerIdle
	timerHeader
	timerBody
	timerMessage
	timerPing
	timerPong
	timerWrite
)

// setTimer sets the time-out to what the session is waiting for now.
func (s *session) setTimer(drained bool) {
	if s.phase > speaksWS {
		return
	}
	t := &s.node.cfg.Timeouts
	if left := s.conn.Unwritten(); left > 0 {
		if s.timer != timerWrite || drained {
			s.timer, s.unwritten = timerWrite, int32(left)
			s.conn.SetTimeout(t.Write)
		}
		return
	}
	want, after, restart := timerNone, time.Duration(0), false
	switch {
	case s.phase == speaksWS && s.partial != nil && !s.paused():
		want, after = timerMessage, t.Body
	case s.phase == speaksWS:
		if s.timer == timerPong && !s.heard {
			return
		}
		want, after, restart = timerPing, t.Ping, s.heard || s.timer == timerMessage
		s.heard = false
	case s.partial != nil && s.partial.http.inBody:
		want, after = timerBody, t.Body
	case s.partial != nil && !s.paused():
		want, after = timerHeader, t.Header
	case s.queued > 0:
		want = timerNone
	default:
		want, after, restart = timerIdle, t.Idle, true
	}
	if s.timer != want || restart {
		s.timer = want
		if idle := want == timerIdle; idle != s.idle.Load() {
			s.idle.Store(idle)
		}
		s.conn.SetTimeout(after)
	}
}

// expired is told that the time-out has passed.
func (s *session) expired(w *scratch) {
	t := &s.node.cfg.Timeouts
	was := s.timer
	s.timer = timerNone
	switch was {
	case timerIdle:
		s.goodbye(w, errIdle)
	case timerHeader, timerBody:
		s.refuse(w, refuseTimeout)
	case timerMessage:
		s.closeWS(w, ws.CodePolicyViolation, "message not complete in time", errSlow)
	case timerPing:
		s.ping(w)
		s.timer = timerPong
		s.conn.SetTimeout(t.Ping)
	case timerPong:
		s.closeWS(w, ws.CodeGoingAway, "no answer to ping", errSilent)
	case timerWrite:
		if left := s.conn.Unwritten(); left > 0 && left >= int(s.unwritten) {
			s.stalled()
		}
	}
}
