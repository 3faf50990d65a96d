// Package child starts servers as child processes of a measuring program, waits until
// they are ready, ends them, and reads from /proc what they take up.
//
// A Process is ended by its id, and by nothing else. Its methods may be called from
// any goroutine. The environment of a child has none of the caller's OMMER_ variables.
// A child is in a process group of its own, and on Linux the kernel kills it when its
// parent is gone. The readers of /proc work on Linux, where proc(5) is.
//
// The package knows nothing of what it starts beyond a TCP address to listen at and
// an admin listener with /readyz, and must import nothing of ours.
package child
