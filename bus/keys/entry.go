package keys

import "sync/atomic"

// Entry is a key as an edge knows it. It is shared by everything that goes on under
// the key and lives as long as any of that does.
type Entry struct {
	id, name string
	revoked  atomic.Bool

	// The directory's alone, under its mutex.
	revision uint64
	seen     uint64 // the load in which the bucket last had it
}

// static is the revision of keys that are in no bucket. Nothing is newer.
const static = 1<<64 - 1

// ID is the public name of the key, fit for logs and metrics.
func (e *Entry) ID() string { return e.id }

// Name is what the operator called the key when this process first saw it.
func (e *Entry) Name() string { return e.name }

// Revoked says that the key is no longer good. It never turns back: a key that
// becomes good again gets another Entry.
func (e *Entry) Revoked() bool { return e.revoked.Load() }
