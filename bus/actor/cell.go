package actor

import "sync/atomic"

// Cell orders the runs of one actor: at most one goroutine runs it at a time,
// and no signal is lost. It is four bytes; the zero value is idle. A Cell must
// not be copied after its first use.
//
// Whoever wants something of the actor posts signal bits. The one whose Post
// returns true holds the run, and passes it on by submitting the actor to a
// Pool (or by calling its Run):
//
//	func (s *session) signal(bits uint32) {
//		if s.cell.Post(bits) {
//			s.pool.Submit(s)
//		}
//	}
//
//	func (s *session) Run() {
//		for {
//			bits := s.cell.Take()
//			// do what bits ask for
//			if s.cell.Rest() {
//				return
//			}
//		}
//	}
//
// Instead of going round again, a Run may submit itself and return, still
// holding the run, so that others have their turn. An actor that is done keeps
// its run: what is posted from then on starts nothing.
//
// What a goroutine wrote before its Post is seen by the run that takes the bits,
// and what one run wrote is seen by the next.
type Cell struct {
	word atomic.Uint32
}

const (
	cellBusy   = 1 << 31 // somebody holds the run
	cellPosted = 1 << 30 // something was posted since Take, be it no bits
	cellMarks  = cellBusy | cellPosted
)

// Post adds signal bits, of which the lower 30 are the caller's to define. It
// returns true when the cell was idle: the caller then holds the run. Any
// goroutine may call it, the running one too. Post(0) asks for a run alone.
func (c *Cell) Post(bits uint32) bool {
	// It writes even when the bits are there already: looking alone would not
	// order what the caller wrote before the run that takes them.
	return c.word.Or(bits|cellMarks)&cellBusy == 0
}

// Take returns the bits posted so far and clears them. Only the goroutine that
// holds the run may call it.
func (c *Cell) Take() uint32 {
	return c.word.Swap(cellBusy) &^ cellMarks
}

// Rest gives the run back. It returns false, and the caller still holds the run,
// when something was posted since Take. Only the goroutine that holds the run
// may call it.
func (c *Cell) Rest() bool {
	return c.word.CompareAndSwap(cellBusy, 0)
}

// Busy reports whether somebody holds the run at this moment.
func (c *Cell) Busy() bool {
	return c.word.Load()&cellBusy != 0
}
