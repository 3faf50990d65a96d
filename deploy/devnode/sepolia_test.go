package devnode

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
)

// The members of results, in the order in which they are sent.
var (
	uncleMembers = []string{
		"baseFeePerGas", "difficulty", "extraData", "gasLimit", "gasUsed", "hash", "logsBloom", "miner", "mixHash",
		"nonce", "number", "parentHash", "receiptsRoot", "sha3Uncles", "size", "stateRoot", "timestamp",
		"transactionsRoot", "uncles",
	}
	blockMembers = slices.Sorted(slices.Values(append(slices.Clone(uncleMembers), "transactions")))
)

func members(tb testing.TB, result json.RawMessage) []string {
	tb.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(result, &m); err != nil {
		tb.Fatalf("%v: %s", err, result)
	}
	return slices.Sorted(maps.Keys(m))
}

// answer is what a client makes of a result: the header from its fields, and what
// the node claims of it.
type answer struct {
	types.Header
	Claimed string
	Size    hexutil.Uint64
	Uncles  []string
}

func decode(tb testing.TB, result json.RawMessage) answer {
	tb.Helper()
	var a answer
	var rest struct {
		Hash   string         `json:"hash"`
		Size   hexutil.Uint64 `json:"size"`
		Uncles []string       `json:"uncles"`
	}
	if err := json.Unmarshal(result, &a.Header); err != nil {
		tb.Fatalf("%v: %s", err, result)
	}
	if err := json.Unmarshal(result, &rest); err != nil {
		tb.Fatalf("%v: %s", err, result)
	}
	a.Claimed, a.Size, a.Uncles = rest.Hash, rest.Size, rest.Uncles
	return a
}

// TestRealUncles asks for every block of a Sepolia file and for every uncle in it,
// by number and by hash. All hashes are computed from the fields of the answers, so
// each uncle is proven by its block, and each block by the next one.
func TestRealUncles(t *testing.T) {
	c := dial(t, start(t, Config{Blocks: sepolia(t, sepolia21)}))

	const first, count = 21 * 8192, 8192
	var numbers [][]any
	for n := range count {
		numbers = append(numbers, []any{hexutil.Uint64(first + n), false})
	}
	var byNumber, byHash [][]any
	var blocks []answer
	for i, result := range ask(t, c, "eth_getBlockByNumber", numbers) {
		b := decode(t, result)
		if got := members(t, result); !slices.Equal(got, blockMembers) {
			t.Fatalf("block has members %v, want %v", got, blockMembers)
		}
		if got := b.Hash().Hex(); got != b.Claimed {
			t.Fatalf("block %v: fields hash to %s, hash is %s", b.Number, got, b.Claimed)
		}
		if i > 0 && b.ParentHash.Hex() != blocks[i-1].Claimed {
			t.Fatalf("block %v: parent %v, want %v", b.Number, b.ParentHash, blocks[i-1].Claimed)
		}
		blocks = append(blocks, b)
		for k := range b.Uncles {
			byNumber = append(byNumber, []any{numbers[i][0], hexutil.Uint64(k)})
			byHash = append(byHash, []any{b.Claimed, hexutil.Uint64(k)})
		}
	}
	if len(byNumber) != 1273 {
		t.Errorf("%d uncles, want 1273", len(byNumber))
	}

	fromNumber := ask(t, c, "eth_getUncleByBlockNumberAndIndex", byNumber)
	fromHash := ask(t, c, "eth_getUncleByBlockHashAndIndex", byHash)
	next, with := 0, 0
	for _, b := range blocks {
		var uncles []*types.Header
		for k, hash := range b.Uncles {
			result := fromNumber[next]
			if string(fromHash[next]) != string(result) {
				t.Errorf("block %v uncle %d by hash:\n%s\nby number:\n%s", b.Number, k, fromHash[next], result)
			}
			next++
			if got := members(t, result); !slices.Equal(got, uncleMembers) {
				t.Fatalf("uncle has members %v, want %v", got, uncleMembers)
			}
			u := decode(t, result)
			if got := u.Hash().Hex(); got != u.Claimed || got != hash {
				t.Errorf("block %v uncle %d: fields hash to %s, hash is %s, the block has %s", b.Number, k, got, u.Claimed, hash)
			}
			if want := types.NewBlockWithHeader(&u.Header).Size(); uint64(u.Size) != want {
				t.Errorf("block %v uncle %d: size %d, want %d", b.Number, k, u.Size, want)
			}
			if u.Uncles == nil || len(u.Uncles) > 0 {
				t.Errorf("block %v uncle %d: uncles %v, want []", b.Number, k, u.Uncles)
			}
			uncles = append(uncles, &u.Header)
		}
		if len(uncles) > 0 {
			with++
		}
		if got := types.CalcUncleHash(uncles); got != b.UncleHash {
			t.Errorf("block %v: uncles hash to %v, sha3Uncles is %v", b.Number, got, b.UncleHash)
		}
	}
	if with != 647 {
		t.Errorf("%d blocks with uncles, want 647", with)
	}
}

// TestEthclient asks with go-ethereum's client, which checks on its own.
func TestEthclient(t *testing.T) {
	client := ethclient.NewClient(dial(t, start(t, Config{Blocks: sepolia(t, sepolia21)})))
	ctx := t.Context()
	id, err := client.ChainID(ctx)
	if err != nil || id.Uint64() != 11155111 {
		t.Errorf("chain id %v, %v, want Sepolia's 11155111", id, err)
	}
	head, err := client.BlockNumber(ctx)
	if err != nil || head != 22*8192-1 {
		t.Fatalf("head %d, %v", head, err)
	}
	for n := head; n > head-100; n-- {
		h, err := client.HeaderByNumber(ctx, new(big.Int).SetUint64(n))
		if err != nil {
			t.Fatal(err)
		}
		again, err := client.HeaderByHash(ctx, h.Hash())
		if err != nil || again.Hash() != h.Hash() {
			t.Errorf("block %d is not found by the hash of its fields: %v", n, err)
		}
	}
}

// TestChainID looks at each way in which the chain is found out.
func TestChainID(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"from the genesis block", Config{Blocks: sepolia(t, sepolia00)}, `"0xaa36a7"`},
		{"from a transaction", Config{Blocks: sepolia(t, sepolia21)}, `"0xaa36a7"`},
		{"of the sample", Config{}, `"0x539"`},
		{"as configured", Config{ChainID: 5}, `"0x5"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, dial(t, start(t, c.cfg)), "eth_chainId", [][]any{nil})
			if string(got[0]) != c.want {
				t.Errorf("got %s, want %s", got[0], c.want)
			}
		})
	}
}
