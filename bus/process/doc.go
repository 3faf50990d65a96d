// Package process is what every Ommer process has in common: options from
// flags, environment and a file, a logger, an admin listener with health and
// metrics, and the order in which parts start and stop.
//
// It knows nothing of edges, workers or NATS. A main function fills Options,
// hands its parts to Run and returns the exit code.
package process
