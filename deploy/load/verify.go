package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// verifier recomputes the hash of uncles from their fields. The same bytes are looked
// at once for each question, so that the load stays cheap.
type verifier struct {
	seen []atomic.Pointer[[]byte] // by question
}

func newVerifier(questions int) *verifier {
	return &verifier{make([]atomic.Pointer[[]byte], questions)}
}

func (v *verifier) check(question int, result []byte) error {
	if good := v.seen[question].Load(); good != nil && bytes.Equal(*good, result) {
		return nil
	}
	var h types.Header
	if err := json.Unmarshal(result, &h); err != nil {
		return fmt.Errorf("no block object: %w", err)
	}
	var said struct {
		Hash common.Hash `json:"hash"`
	}
	if err := json.Unmarshal(result, &said); err != nil {
		return fmt.Errorf("no block object: %w", err)
	}
	if got := h.Hash(); got != said.Hash {
		return fmt.Errorf("an uncle that says %s and hashes to %s", said.Hash, got)
	}
	good := bytes.Clone(result)
	v.seen[question].Store(&good)
	return nil
}
