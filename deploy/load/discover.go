package load

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ommer/ommer/schema"
)

// Range is block numbers, both ends included.
type Range struct{ From, To uint64 }

// MostBlocks bounds a Range.
const MostBlocks = 100_000

// UnmarshalText reads FROM-TO, or one number, each decimal or 0x and hexadecimal.
func (r *Range) UnmarshalText(text []byte) error {
	from, to, ok := strings.Cut(string(text), "-")
	if !ok {
		to = from
	}
	var errs [2]error
	r.From, errs[0] = strconv.ParseUint(from, 0, 63)
	r.To, errs[1] = strconv.ParseUint(to, 0, 63)
	switch {
	case errs[0] != nil || errs[1] != nil || r.To < r.From:
		return errors.New("want FROM-TO, two block numbers, for example 1000-1999 or 0x3e8-0x7cf")
	case r.To-r.From >= MostBlocks:
		return fmt.Errorf("%d blocks are too many: at most %d", r.To-r.From+1, MostBlocks)
	}
	return nil
}

// String is the range in hexadecimal, as questions name blocks.
func (r Range) String() string { return fmt.Sprintf("%#x-%#x", r.From, r.To) }

// Numbers asks for the uncle at an index of every block of a range, whether there is
// one or not.
func Numbers(r Range, index uint64) []Question {
	var qs []Question
	for n := r.From; n <= r.To; n++ {
		qs = append(qs, toQuestion(schema.Question{Block: schema.Number(n), Index: index}))
	}
	return qs
}

func toQuestion(q schema.Question) Question {
	return Question{Method: q.Method().String(), Params: string(schema.AppendParams(nil, q))}
}

// Where uncles are looked for unless somebody says better. The first blocks of mainnet
// and Sepolia have uncles, and those of the chain that `ommer serve` carries. The
// others are those of the era of Sepolia that `make run` serves.
var usual = []Range{{0, 0x3ff}, {0x2a600, 0x2a9ff}}

// Found are uncles that a service has.
type Found struct {
	Looked  []Range
	Numbers []Question // by the number of the block
	Hashes  []Question // by its hash
}

// lookBatch is how many blocks are asked for in a request.
const lookBatch = 100

// Look asks a service for uncles in some ranges, in the usual ones if there are none,
// and returns the questions that have an uncle for an answer. Hashes of blocks are
// learned from the uncles: the parent of an uncle is a block of the chain.
func Look(ctx context.Context, c DialerConfig, ranges []Range) (Found, error) {
	if len(ranges) == 0 {
		ranges = usual
	}
	f := Found{Looked: ranges}
	var ask []Question
	for _, r := range ranges {
		for index := range uint64(2) { // no block has more
			ask = append(ask, Numbers(r, index)...)
		}
	}
	numbers, parents, err := lookFor(ctx, c, ask)
	if err != nil {
		return f, err
	}
	f.Numbers = numbers
	ask = nil
	for _, parent := range parents {
		for index := range uint64(2) {
			ask = append(ask, toQuestion(schema.Question{Block: schema.BlockHash(parent), Index: index}))
		}
	}
	if len(ask) > 0 {
		f.Hashes, _, err = lookFor(ctx, c, ask)
	}
	return f, err
}

// lookFor returns those of the questions that have an answer, and the parents of the
// uncles.
func lookFor(ctx context.Context, c DialerConfig, ask []Question) (found []Question, parents []schema.Hash, err error) {
	c.Questions, c.Batch = ask, min(lookBatch, len(ask))
	d, err := NewDialer(c)
	if err != nil {
		return nil, nil, err
	}
	conn, err := d.Dial(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()                                          //nolint:errcheck // everything was read
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // whoever gives up does not wait for an answer
	seen := map[schema.Hash]bool{}
	var refused error // a node that has dropped some history still has the rest
	for i, r := range d.qs.requests {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		answer, err := conn.Ask(i)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if len(answer) == 0 {
			return nil, nil, err
		}
		if refused == nil {
			refused = err
		}
		var list []struct {
			Result *struct {
				ParentHash string `json:"parentHash"`
			} `json:"result"`
		}
		if json.Unmarshal(answer, &list) != nil || len(list) != r.calls {
			return nil, nil, cmp.Or(err, error(d.clean(&Failure{KindForm, quote(answer)})))
		}
		for k, a := range list {
			if a.Result == nil || r.first+k >= len(ask) { // the last batch goes round
				continue
			}
			found = append(found, d.qs.question(r, k))
			q, wrong := schema.ParseParams(schema.UncleByHash, []byte(`["`+a.Result.ParentHash+`","0x0"]`))
			if wrong == nil && !seen[q.Block.Hash()] {
				seen[q.Block.Hash()] = true
				parents = append(parents, q.Block.Hash())
			}
		}
	}
	if len(found) > 0 {
		refused = nil
	}
	return found, parents, refused
}

// ReadQuestions reads questions, one array of parameters in JSON on each line. Their
// method is told by the length of the block.
func ReadQuestions(text []byte) (qs []Question, err error) {
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !json.Valid([]byte(line)) {
			return nil, fmt.Errorf("line %d: want an array of parameters in JSON, and nothing else", number)
		}
		method := schema.UncleByNumber
		q, wrong := schema.ParseParams(method, []byte(line))
		if wrong != nil {
			method = schema.UncleByHash
			if byHash, still := schema.ParseParams(method, []byte(line)); still == nil {
				q, wrong = byHash, nil
			}
		}
		if wrong != nil {
			return nil, fmt.Errorf("line %d: %s", number, wrong.Message)
		}
		qs = append(qs, toQuestion(q))
	}
	if len(qs) == 0 {
		return nil, errors.New("it has no questions")
	}
	return qs, nil
}
