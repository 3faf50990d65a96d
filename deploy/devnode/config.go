package devnode

import (
	"log/slog"
	"time"
)

// DefaultAddr is loopback and any free port.
const DefaultAddr = "127.0.0.1:0"

// Config is what a Node is made of. The zero value serves the sample chain that
// the package carries.
type Config struct {
	// Blocks is a file or a folder: era1 files, and RLP as `geth export` writes it,
	// plain or gzip. Of a folder, the files named *.era1, *.rlp and *.rlp.gz are
	// read; they need not be contiguous and must not overlap. Empty means the
	// sample chain.
	Blocks string
	// Addr is where to listen, DefaultAddr when empty.
	Addr string
	// ChainID is what eth_chainId answers. 0 means to find out: from the genesis
	// block when it is held and known, else from the first transaction that says,
	// else DefaultChainID.
	ChainID uint64
	// Logger takes what the node has to say, nothing when nil.
	Logger *slog.Logger
}

// DefaultChainID is the chain of blocks that do not tell theirs, the usual one of
// development chains.
const DefaultChainID = 1337

// Limits of what is read and of what a caller can make grow.
const (
	// maxFiles bounds a folder. Of full era1 files these are two million blocks,
	// for whose hashes the index takes about 150 MB.
	maxFiles = 256
	// maxExport bounds the RLP exports, decompressed, of which the blocks are held
	// in memory; era1 files are read as they are asked for.
	maxExport = 128 << 20
	// maxCache bounds the answers kept, about 20,000 blocks.
	maxCache = 64 << 20
	// maxConns bounds connections; more wait to be accepted.
	maxConns = 1024
	// maxBody bounds a request; 5 MiB is geth's limit.
	maxBody = 5 << 20
	// maxBatch and maxBatchAnswer are geth's defaults.
	maxBatch       = 1000
	maxBatchAnswer = 25 * 1000 * 1000
	// maxHeaderBytes bounds the HTTP header of a request.
	maxHeaderBytes = 16 << 10
)

// Time-outs of a connection, geth's defaults (rpc.DefaultHTTPTimeouts), and how
// long requests in flight may take when the node stops.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 120 * time.Second
	stopTimeout  = 5 * time.Second
)
