package upstream

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/schema"
)

// VerifyHeader checks that a header hashes to what the node says is its hash, and that
// it is the one asked for: else ErrUntrue, or ErrUnknownFields. object is the JSON that
// the header was read from.
func VerifyHeader(h *types.Header, said common.Hash, s schema.Selector, object []byte) error {
	return verifyHeader(h, said, s, object, false)
}

// VerifyUncles checks the uncles that a node gave against their block's sha3Uncles.
// said is how many the block object lists. Too few are ErrPruned, others ErrUntrue.
func VerifyUncles(list []*types.Header, commitment common.Hash, said int) error {
	return verifyUncles(list, commitment, said, false)
}

// verifyHeader is VerifyHeader, unless the node is to be believed: then nothing is hashed.
func verifyHeader(h *types.Header, said common.Hash, s schema.Selector, object []byte, believe bool) error {
	if !h.Number.IsUint64() {
		return fmt.Errorf("%w: a block number over 64 bits", ErrUntrue)
	}
	if !believe {
		if err := verifyHash(h, said, object); err != nil {
			return err
		}
	}
	if h.Difficulty.Sign() == 0 && h.Number.Sign() > 0 && h.UncleHash != types.EmptyUncleHash {
		return fmt.Errorf("%w: block %v is of proof of stake and has uncles, see EIP-3675", ErrUntrue, h.Number)
	}
	switch s.Kind() {
	case schema.ByHash:
		if want := common.Hash(s.Hash()); said != want {
			return fmt.Errorf("%w: block %v in place of block %v", ErrUntrue, said, want)
		}
	case schema.ByNumber:
		if got := h.Number.Uint64(); got != s.Number() {
			return fmt.Errorf("%w: block %d in place of block %d", ErrUntrue, got, s.Number())
		}
	}
	return nil
}

func verifyHash(h *types.Header, said common.Hash, object []byte) error {
	got := h.Hash()
	if got == said {
		return nil
	}
	if fields := unknownFields(object); len(fields) > 0 {
		return fmt.Errorf("%w: %s", ErrUnknownFields, strings.Join(fields, " "))
	}
	return fmt.Errorf("%w: the header of block %v hashes to %v, its hash is said to be %v", ErrUntrue, h.Number, got, said)
}

// verifyUncles checks the uncles that a node gave against the hash of their list.
// said is how many it says the block has, in the block object. If the node is to be
// believed, only missing ones are seen.
func verifyUncles(list []*types.Header, commitment common.Hash, said int, believe bool) error {
	if believe && len(list) > 0 && len(list) >= said {
		return nil
	}
	if got := types.CalcUncleHash(list); got != commitment {
		if len(list) == 0 || len(list) < said {
			return fmt.Errorf("%w: %d uncles where the header commits to more", ErrPruned, len(list))
		}
		return fmt.Errorf("%w: %d uncles that hash to %v, the header commits to %v", ErrUntrue, len(list), got, commitment)
	}
	return nil
}

// unknownFields lists members of a block object that are neither fields of a header
// nor known to stand beside them. A header with a field that a later fork added
// cannot be hashed, which is not the node's fault.
func unknownFields(object []byte) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	for _, name := range []string{"hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals"} {
		delete(members, name)
	}
	for f := range reflect.TypeFor[types.Header]().Fields() {
		delete(members, f.Tag.Get("json"))
	}
	var names []string
	for name := range members {
		names = append(names, fmt.Sprintf("%.32q", name))
	}
	slices.Sort(names)
	return names[:min(len(names), 8)]
}
