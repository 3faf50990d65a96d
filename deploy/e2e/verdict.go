//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// probe is a question whose answer is known.
type probe struct {
	method, block string
	index         int
	want          common.Hash // zero: null
}

// verdict is what came of questions, and of a lie if there was one.
type verdict struct {
	right, wrong, null int
	codes              map[int]int // errors
	examples           []string    // of what is not right

	later, of int                // lookups that the liar got once it was known, of how many
	outcomes  map[string]float64 // of the lookups it was asked, as the worker counts them
	warned    bool               // the log names it
	stalled   bool               // an honest node did not answer in time

	fault, known string // what falls short, and why it is known to
}

// ask asks in one message and compares the answers.
func (v *verdict) ask(t *testing.T, c caller, probes []probe) {
	t.Helper()
	message := []byte{'['}
	for i, p := range probes {
		if i > 0 {
			message = append(message, ',')
		}
		message = append(message, callText(i, p.method, p.block, p.index)...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	raw, err := c.call(ctx, append(message, ']'))
	var batch []response
	if err == nil {
		err = strict(raw, &batch)
	}
	if err != nil || len(batch) != len(probes) {
		t.Fatalf("%d answers to %d calls: %v", len(batch), len(probes), err)
	}
	for i, p := range probes {
		v.add(p, &batch[i], i)
	}
}

func (v *verdict) add(p probe, r *response, id int) {
	got := common.Hash{}
	result, err := r.to(id)
	if err == nil && string(result) != "null" {
		var h *types.Header
		if h, err = header(result); err == nil {
			got = h.Hash()
		}
	}
	said, refused := errors.AsType[*rpcError](err)
	switch {
	case refused:
		if v.codes == nil {
			v.codes = map[int]int{}
		}
		v.codes[said.Code]++
	case err == nil && got == p.want:
		v.right++
		return
	case err == nil && got == common.Hash{}:
		v.null++
	default:
		v.wrong++
	}
	if len(v.examples) < 3 {
		v.examples = append(v.examples, fmt.Sprintf("%s %s index %d: %.150s, want %v", p.method, p.block, p.index, r, p.want))
	}
}

func (v *verdict) String() string {
	text := fmt.Sprintf("%d right", v.right)
	for _, code := range slices.Sorted(maps.Keys(v.codes)) {
		text += fmt.Sprintf(", %d %d", v.codes[code], code)
	}
	if v.wrong > 0 {
		text += fmt.Sprintf(", %d WRONG", v.wrong)
	}
	if v.null > 0 {
		text += fmt.Sprintf(", %d FALSE NULL", v.null)
	}
	return text
}
