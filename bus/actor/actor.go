package actor

// Actor has state that only its Receive touches, so it needs no lock.
type Actor[M any] interface {
	// Receive handles one message. It is never called by two goroutines at a
	// time, and it must not block: it runs on one of the pool's goroutines.
	// What takes long is started elsewhere and told back as a message.
	Receive(m M)
}

// Failer is a message that somebody waits for. The runtime calls Fail when the
// message will not be handled to its end: the actor panicked while receiving it
// (the error wraps ErrPanic), or it was discarded at a stop (ErrStopped). The
// message may have been answered already, in full or in part, when it is failed
// after a panic: Fail must tolerate that. It must not block.
type Failer interface {
	Fail(err error)
}

// Crasher is told about a panic: an actor on the value that will never run
// again, so that it can answer those who wait in its state; a Runner of a Pool
// on itself. The error is a *PanicError. It must not block. A panic out of an
// actor's Crashed is contained.
type Crasher interface {
	Crashed(err error)
}

// Stopper is told that its actor has stopped: the last call it gets, after what
// was in the mailbox has been received or failed. It answers here those who wait
// in its state. It must not block. A panic out of it is contained.
type Stopper interface {
	Stopped()
}

// Options are the settings of one actor.
type Options struct {
	// Name is shown in logs, metrics and Actors: one of a closed set, such as
	// shard-0 to shard-3. No two actors alive in a system share one.
	Name string
	// Mailbox is how many messages may wait; beyond it Tell returns ErrFull.
	// Default 1024.
	Mailbox int
	// Reserved is how many more places there are for TellReserved. Default 0.
	Reserved int
}

// DefaultMailbox is the number of places in a mailbox when Options say nothing.
const DefaultMailbox = 1024
