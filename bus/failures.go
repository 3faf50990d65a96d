package bus

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/schema"
)

// failures logs why questions failed: each at debug level, and at warn level the first
// of a code and then one every logAgain, with how many there were.
type failures struct {
	byCode [codes]struct {
		count, told atomic.Uint64
		logged      atomic.Int64 // unix ns, 0 for never
	}
	latest atomic.Uint32 // code
}

// last is the code of the last failure, for the statistics; empty for none.
func (f *failures) last() string {
	if c := schema.Code(f.latest.Load()); c != schema.OK {
		return c.String()
	}
	return ""
}

// log takes note of a failure. What was asked is never part of it.
func (f *failures) log(log *slog.Logger, e *schema.Error) {
	code := e.Code
	if int(code) >= codes {
		code = schema.Internal
	}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		log.Debug("question failed", "code", code, "detail", e.Detail)
	}
	f.latest.Store(uint32(code))
	c := &f.byCode[code]
	n := c.count.Add(1)
	now, last := time.Now().UnixNano(), c.logged.Load()
	if last != 0 && now-last < int64(logAgain) || !c.logged.CompareAndSwap(last, now) {
		return
	}
	log.Warn("questions fail", "code", code, "detail", e.Detail, "count", n-c.told.Swap(n))
}
