package actor

import (
	"errors"
	"fmt"
)

// Errors of this package. Those that carry a reason wrap one of them.
var (
	// ErrFull: the mailbox has no place left. The message was not taken.
	ErrFull = errors.New("actor: mailbox full")
	// ErrStopped: the actor or its system has stopped or is about to. The
	// message was not taken, or was discarded unread.
	ErrStopped = errors.New("actor: stopped")
	// ErrPanic: the actor panicked. The error that wraps it is a *PanicError.
	ErrPanic = errors.New("actor: panic")
	// ErrName: the actor's name is empty or taken by another that is alive.
	ErrName = errors.New("actor: name empty or in use")
)

// PanicError is a panic as an error. It wraps ErrPanic, and the panic's value
// too if that is an error.
type PanicError struct {
	Value any    // what panic was called with; nil when the goroutine was ended by runtime.Goexit
	Stack []byte // of the goroutine that panicked, as runtime/debug.Stack prints it
}

// Error returns the reason in one line, without the stack.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return ErrPanic.Error() + ": runtime.Goexit called"
	}
	return fmt.Sprintf("%v: %v", ErrPanic, e.Value)
}

// Unwrap returns ErrPanic and, if it is an error, the value.
func (e *PanicError) Unwrap() []error {
	if err, ok := e.Value.(error); ok {
		return []error{ErrPanic, err}
	}
	return []error{ErrPanic}
}
