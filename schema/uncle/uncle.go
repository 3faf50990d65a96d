// Package uncle renders an uncle as the block object that callers are sent.
//
// It holds one function and no state, and may be used from any goroutine. It does
// not decide whether a header is what it claims to be: whoever fetched the header
// does that. The edge must not import it, because package types brings the KZG
// set-up and the signature code into every binary that links it.
package uncle

import (
	"encoding/hex"
	"math/big"
	"strconv"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// SizeHint is a capacity that holds the block object of any uncle of the main
// network: the names and fixed fields come to about 1,420 bytes, the quantities
// and the extra data, at most 32 bytes there, make the rest.
const SizeHint = 1700

// Append appends to dst the block object of the uncle with header h, as JSON, and
// returns the extended slice.
//
// The keys are in alphabetical order. The fields of the header are those that
// RPCMarshalHeader of go-ethereum's internal/ethapi/api.go prints: baseFeePerGas and
// what later forks added stand there when the header has them and are left out when
// it does not, so that a client can always recompute the hash. The transactions are
// left out, uncles is always empty, as both are unknown for an uncle,
// and totalDifficulty is always null. The size is that of the RLP of the block
// [h, [], []].
//
// A nil Difficulty or Number counts as 0, as in the RLP encoding. Append panics when
// one of the header's big integers is negative, which no header decoded from RLP or
// JSON can have.
func Append(dst []byte, h *types.Header) []byte {
	enc, err := rlp.EncodeToBytes(h)
	if err != nil {
		panic("uncle: a header without an encoding: " + err.Error())
	}
	hash := crypto.Keccak256Hash(enc)
	const twoEmptyLists = 2
	size := rlp.ListSize(uint64(len(enc)) + twoEmptyLists)

	dst = append(dst, '{')
	if h.BaseFee != nil {
		dst = appendBig(dst, `"baseFeePerGas":"0x`, h.BaseFee)
	}
	if h.BlobGasUsed != nil {
		dst = appendUint(dst, `"blobGasUsed":"0x`, *h.BlobGasUsed)
	}
	if h.BlockAccessListHash != nil {
		dst = appendData(dst, `"blockAccessListHash":"0x`, h.BlockAccessListHash[:])
	}
	dst = appendBig(dst, `"difficulty":"0x`, h.Difficulty)
	if h.ExcessBlobGas != nil {
		dst = appendUint(dst, `"excessBlobGas":"0x`, *h.ExcessBlobGas)
	}
	dst = appendData(dst, `"extraData":"0x`, h.Extra)
	dst = appendUint(dst, `"gasLimit":"0x`, h.GasLimit)
	dst = appendUint(dst, `"gasUsed":"0x`, h.GasUsed)
	dst = appendData(dst, `"hash":"0x`, hash[:])
	dst = appendData(dst, `"logsBloom":"0x`, h.Bloom[:])
	dst = appendData(dst, `"miner":"0x`, h.Coinbase[:])
	dst = appendData(dst, `"mixHash":"0x`, h.MixDigest[:])
	dst = appendData(dst, `"nonce":"0x`, h.Nonce[:])
	dst = appendBig(dst, `"number":"0x`, h.Number)
	if h.ParentBeaconRoot != nil {
		dst = appendData(dst, `"parentBeaconBlockRoot":"0x`, h.ParentBeaconRoot[:])
	}
	dst = appendData(dst, `"parentHash":"0x`, h.ParentHash[:])
	dst = appendData(dst, `"receiptsRoot":"0x`, h.ReceiptHash[:])
	if h.RequestsHash != nil {
		dst = appendData(dst, `"requestsHash":"0x`, h.RequestsHash[:])
	}
	dst = appendData(dst, `"sha3Uncles":"0x`, h.UncleHash[:])
	dst = appendUint(dst, `"size":"0x`, size)
	if h.SlotNumber != nil {
		dst = appendUint(dst, `"slotNumber":"0x`, *h.SlotNumber)
	}
	dst = appendData(dst, `"stateRoot":"0x`, h.Root[:])
	dst = appendUint(dst, `"timestamp":"0x`, h.Time)
	dst = append(dst, `"totalDifficulty":null,`...)
	dst = appendData(dst, `"transactionsRoot":"0x`, h.TxHash[:])
	dst = append(dst, `"uncles":[]`...)
	if h.WithdrawalsHash != nil {
		dst = appendData(dst, `,"withdrawalsRoot":"0x`, h.WithdrawalsHash[:])
		dst = dst[:len(dst)-1] // the last member has no comma behind it
	}
	return append(dst, '}')
}

// The three below take the start of a member up to the digits and end it with a
// quote and a comma.

// appendData appends b as hexadecimal data, which keeps its length.
func appendData(dst []byte, start string, b []byte) []byte {
	dst = append(dst, start...)
	dst = hex.AppendEncode(dst, b)
	return append(dst, '"', ',')
}

// appendUint appends n as a quantity: no leading zeros, a single one for zero.
func appendUint(dst []byte, start string, n uint64) []byte {
	dst = append(dst, start...)
	dst = strconv.AppendUint(dst, n, 16)
	return append(dst, '"', ',')
}

// appendBig appends n as a quantity, nil as zero.
func appendBig(dst []byte, start string, n *big.Int) []byte {
	dst = append(dst, start...)
	if n == nil {
		dst = append(dst, '0')
	} else {
		dst = n.Append(dst, 16)
	}
	return append(dst, '"', ',')
}
