package upstream

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// shutter keeps lookups from a node that has asked to be left alone: by HTTP status 429,
// or 503 with Retry-After, or by an error of code -32005.
type shutter struct {
	mu    sync.Mutex
	until time.Time
	last  time.Duration // the pause last given, 0 once the node has answered
	asked time.Time     // until when the node itself has asked for
}

const (
	firstShut   = time.Second // doubled with each in a row without any answer, where a node does not say for how long
	longestShut = 30 * time.Second
	longestAsk  = time.Minute // what a node may ask for
)

// left is for how long the node is still to be left alone.
func (s *shutter) left(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until.Sub(now)
}

// close begins a pause. first says that there was none; the many refusals of those who
// were under way make one pause.
func (s *shutter) close(now time.Time) (d time.Duration, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.until) && !s.asked.After(s.until) {
		return s.until.Sub(now), false
	}
	first = !now.Before(s.until)
	if d = s.asked.Sub(now); d <= 0 {
		s.last = min(max(2*s.last, firstShut), longestShut)
		d = s.last
	}
	s.until = now.Add(d)
	return d, first
}

// open notes that the node has answered.
func (s *shutter) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = 0
}

// told looks at a response for how long the node asks to be left alone: in seconds or
// until a date (RFC 9110 section 10.2.3).
func (s *shutter) told(r *http.Response) {
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusServiceUnavailable {
		return
	}
	value, now := r.Header.Get("Retry-After"), time.Now()
	var until time.Time
	if n, err := strconv.ParseUint(value, 10, 32); err == nil {
		until = now.Add(time.Duration(n) * time.Second)
	} else if until, err = http.ParseTime(value); err != nil {
		return
	}
	s.wish(until)
}

// wish notes until when the node asks to be left alone.
func (s *shutter) wish(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = until
	if latest := time.Now().Add(longestAsk); until.After(latest) {
		s.asked = latest
	}
}
