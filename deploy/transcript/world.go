package transcript

import (
	"crypto/x509"
	"testing"
)

// Names of the worlds, as directives call them.
const (
	InProcess = "in process"
	EndToEnd  = "end to end"
)

// World is what conversations are played in. Its methods are called from one
// goroutine.
type World interface {
	// Name is InProcess or EndToEnd.
	Name() string
	// Edge starts an edge with these flags, which serves until t ends or it is
	// stopped, and returns when it answers.
	Edge(t *testing.T, flags []string) *Edge
	// NewKey makes a key with settings, flags of `ommer keys create`. Edges know it
	// soon after, and as soon as it is revoked.
	NewKey(t *testing.T, name string, settings []string) (key string, revoke func())
	// Source is what stands behind every edge.
	Source() Source
}

// Edge is a running edge.
type Edge struct {
	HTTP, HTTPS string // addresses
	Roots       *x509.CertPool
	Key         string                 // a key that is never revoked
	Stop        func()                 // begins the stop
	Metrics     func() (string, error) // in Prometheus's text format
}

// Source answers lookups from the blocks of Sample, unless it is told otherwise. What
// it is told holds until Reset.
type Source interface {
	// Hold keeps lookups back that come from now on, Release lets them go on.
	// Waiting says how many blocks are being looked up that are held.
	Hold()
	Release()
	Waiting() int
	// Fail makes lookups of a block fail.
	Fail(f Fault, block uint64)
	// Unfinalize makes it have neither a safe nor a finalized block.
	Unfinalize()
	// Asked is how many lookups there have been, -1 where that is not known.
	Asked() int
	// Reset ends all of this.
	Reset()
}

// Fault is a way to fail. Each has a cause in the upstream node.
type Fault string

// The faults.
const (
	Pruned      Fault = "pruned"      // it says that it has dropped the block
	Bodiless    Fault = "bodiless"    // it has the header and says null for the uncles
	Overloaded  Fault = "overloaded"  // it refuses more
	Unreachable Fault = "unreachable" // connections to it break
	Untrue      Fault = "untrue"      // an uncle is not what its header commits to
)
