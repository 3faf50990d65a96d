// Package schema is the vocabulary of the service and its wire: which questions
// can be asked, how they are written by a caller, how they travel on the bus,
// and what can be answered.
//
// It does no I/O and starts no goroutines. Everything here is a plain value that
// may be copied and shared; nothing is mutable after it was made. The edge, the
// bus and the workers all import it and it imports none of them.
package schema
