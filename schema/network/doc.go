// Package network is what has to be known of a chain to answer for it: how it is named,
// by what its nodes are told from those of other chains, and where its uncles end. The
// public networks are known here; any other is configured.
//
// It does no I/O. Nothing in it is mutable.
package network
