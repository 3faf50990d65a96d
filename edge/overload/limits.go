package overload

import (
	"fmt"
	"math"
	"runtime/debug"
	"time"
)

// Limits are what pressure is measured against. The tags are the single place of
// defaults and descriptions, as for the limits of package edge.
type Limits struct {
	Memory int           `default:"0" help:"Bytes that the process may take up. Beyond 85 % of them HTTP connections are not kept alive, beyond 90 % new connections are refused, beyond 95 % requests. 0 means GOMEMLIMIT, or else three quarters of what the container or the machine has."`
	Delay  time.Duration `default:"2s" help:"How late what is ready may be run for a second on end. Beyond half of it new connections are refused, beyond it requests. An edge that is busy and answers in time is milliseconds late."`
	Off    bool          `default:"false" help:"Shed nothing. The pressure is reported all the same."`
}

// minMemory is what an edge takes up that does nothing in particular, and its garbage.
const minMemory = 64 << 20

// Validate reports limits that cannot work, by the names of their flags.
func (l Limits) Validate() error {
	if l.Memory != 0 && l.Memory < minMemory {
		return fmt.Errorf("--overload-memory: must be at least %d", minMemory)
	}
	return nil
}

// Budget is the memory that the process may take up, 0 when nobody knows. Of what is
// not its own alone a quarter is left to what runtime's figures do not show: the
// kernel's buffers of its sockets above all, which count against a container as well.
func (l Limits) Budget() uint64 {
	if l.Memory > 0 {
		return uint64(l.Memory)
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return uint64(limit)
	}
	return available() / 4 * 3
}
