// Package keys holds the API keys of callers: it makes them, keeps their records in
// a JetStream key-value bucket, and gives every edge a copy in memory.
//
// A key is shown once, when it is made. What is kept is its SHA-256: whoever reads
// the bucket, a backup of it or a memory dump learns no key. Keys are 256 random
// bits, so a plain hash is enough; there is nothing to guess that salt or a slow
// hash would protect.
//
// A Registry is the operator's side: create, list, revoke. A Directory is the
// edge's side: Lookup answers from memory and allocates nothing, and it goes on
// answering with what it knows while the bucket cannot be reached.
//
// A whole key must appear in no log, error or metric. The ID of a key is public and
// takes its place.
package keys
