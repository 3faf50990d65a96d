// Package networks is how the networks of a deployment are configured, for edges and
// workers alike: one by flags, or several by a list that all processes can share. It
// reads and checks; it opens nothing.
package networks
