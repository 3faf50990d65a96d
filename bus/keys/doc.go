// Package keys holds the API keys of callers: it makes them, keeps their records in
// a JetStream key-value bucket, and gives every edge a copy in memory.
//
// A key is shown once, when it is made. What is kept is its SHA-256: whoever reads
// the bucket, a backup of it or a memory dump learns no key. Keys are 256 random
// bits, so a plain hash is enough; there is nothing to guess that salt or a slow
// hash would protect.
//
// A Registry is the operator's side: create, list, set, revoke. A Directory is the
// edge's side: Lookup answers from memory and allocates nothing, and it goes on
// answering with what it knows while the bucket cannot be reached.
//
// A record may restrict its key: a rate, and lists of origins, networks and methods.
// The Entry that Lookup returns follows the record, so that what is already open
// under a key feels a change. A record that cannot be read, settings included, makes
// its key one that is not good: what is not understood must not let anyone in. Each
// edge keeps a key's rate by itself.
//
// A whole key must appear in no log, error or metric. The ID of a key is public and
// takes its place.
package keys
