package http1

import (
	"sync/atomic"
	"time"
)

// Date holds the value of the Date field, so that it is formatted once a second
// and not for each answer. Whoever owns the clock calls Set; everybody may call
// Value at the same time. The zero Date has no value, which writes no field.
type Date struct {
	value atomic.Pointer[[]byte]
}

// Set formats t, RFC 9110 section 5.6.7.
func (d *Date) Set(t time.Time) {
	v := t.UTC().AppendFormat(nil, "Mon, 02 Jan 2006 15:04:05 GMT")
	d.value.Store(&v)
}

// Value returns what was set last. It is shared and must not be changed.
func (d *Date) Value() []byte {
	if v := d.value.Load(); v != nil {
		return *v
	}
	return nil
}
