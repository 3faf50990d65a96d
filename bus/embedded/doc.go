// Package embedded runs a NATS server inside the process, for the all-in-one
// binary and for tests.
//
// It is a package of its own so that the binaries that face the internet, which
// import only bus, do not carry a NATS server. Clients reach it over loopback TCP:
// at load that costs less CPU than the server's in-process pipe.
//
// As a leaf node of a cluster it lets who is on it reach who is on the cluster (Leaf).
//
// New starts everything, Close waits for everything. The server takes no signals,
// opens no monitoring port and writes no file outside its store.
package embedded
