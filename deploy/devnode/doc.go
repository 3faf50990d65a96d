// Package devnode is an Ethereum node as far as a lookup of uncles can see one: a
// JSON-RPC server over HTTP that answers from block files. It stands in for an
// upstream node in `make run`, in tests and in benchmarks.
//
// The files are settled history. The last block held is latest, safe and finalized
// at once, the first one is earliest, and there never is a pending block. A block
// between or beyond the files does not exist.
//
// Envelope, batches and parameter errors are go-ethereum's own, by its rpc package.
// Blocks are rendered as geth v1.17 renders them, from go-ethereum's types, and on
// purpose not by the code with which the workers render theirs: an oracle that
// shares its code with what it judges is an echo.
//
// A Node may be asked by any number of clients. It has no authentication and holds
// back nothing: it belongs on loopback, or where every caller is trusted. It must
// not import the edge, the bus or the workers' lookups, nor, except in tests,
// go-ethereum's block processing.
package devnode
