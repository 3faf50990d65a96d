package check

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
)

// facts are what is known of a chain beforehand. They spare calls; what they say of
// blocks is verified like everything else.
type facts struct {
	name    string
	genesis common.Hash // zero: not compared
	// lastWork is the last block that was mined, the last that may have uncles; 0
	// where it has to be found out. work says that it stands here.
	lastWork uint64
	work     bool
	uncles   uint64 // a block that has some, 0 for none known
}

// known are the chains with a name of their own here: those that had uncles, and the
// test networks of main net, which began after the merge.
var known = map[uint64]facts{
	// The first block to have uncles that public documentation shows.
	1: {name: "mainnet", genesis: params.MainnetGenesisHash, lastWork: 15537393, work: true, uncles: 0x29c},
	// Of the blocks in go-ethereum's core/rawdb/eradb/testdata.
	11155111: {name: "sepolia", genesis: params.SepoliaGenesisHash, lastWork: 1450408, work: true, uncles: 0x2a6a4},
	560048:   {name: "hoodi", genesis: params.HoodiGenesisHash, work: true},
	17000:    {name: "holesky", work: true},
	61:       {name: "ethereum classic", genesis: params.MainnetGenesisHash},
	63:       {name: "mordor"},
}
