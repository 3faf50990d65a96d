package archive

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/golang/snappy"
)

// sepolia returns the path of an era1 file of real blocks that the go-ethereum
// module carries.
func sepolia(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ethereum/go-ethereum").Output()
	if err != nil {
		tb.Fatalf("find go-ethereum: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "core", "rawdb", "eradb", "testdata", name)
}

const (
	sepolia00 = "sepolia-00000-643a00f7.era1"
	sepolia21 = "sepolia-00021-b8814b14.era1"
)

// builder writes an era1 file in memory, whole or wrong on purpose.
type builder struct {
	bytes.Buffer
	offsets []int64
	records []node
	td      *big.Int
}

func (w *builder) entry(t entryType, value []byte) {
	var head [entryHead]byte
	binary.LittleEndian.PutUint16(head[:], uint16(t))
	binary.LittleEndian.PutUint32(head[2:], uint32(len(value)))
	w.Write(head[:])
	w.Write(value)
}

func (w *builder) packed(t entryType, value []byte) {
	var b bytes.Buffer
	s := snappy.NewBufferedWriter(&b)
	s.Write(value)
	s.Close()
	w.entry(t, b.Bytes())
}

func (w *builder) begin() {
	w.td = new(big.Int)
	w.entry(typeVersion, nil)
}

// add writes the block of header h with a body given as RLP.
func (w *builder) add(h *types.Header, body []byte) {
	raw, err := rlp.EncodeToBytes(h)
	if err != nil {
		panic(err)
	}
	w.offsets = append(w.offsets, int64(w.Len()))
	w.packed(typeHeader, raw)
	w.packed(typeBody, body)
	w.packed(typeReceipts, []byte{0xc0})
	w.td.Add(w.td, h.Difficulty)
	var td node
	w.td.FillBytes(td[:])
	slices.Reverse(td[:])
	w.entry(typeTotalDifficulty, td[:])
	w.records = append(w.records, hashPair(node(crypto.Keccak256Hash(raw)), td))
}

func (w *builder) finish(start uint64) []byte {
	root := accumulatorRoot(slices.Clone(w.records))
	w.entry(typeAccumulator, root[:])
	base := int64(w.Len())
	index := binary.LittleEndian.AppendUint64(nil, start)
	for _, off := range w.offsets {
		index = binary.LittleEndian.AppendUint64(index, uint64(off-base))
	}
	w.entry(typeIndex, binary.LittleEndian.AppendUint64(index, uint64(len(w.offsets))))
	return w.Bytes()
}

// chain returns n linked headers from number 0, each third with an uncle, and
// their bodies.
func chain(n int) (headers []*types.Header, bodies [][]byte) {
	parent := types.Header{}.ParentHash
	for i := range n {
		body := types.Body{Transactions: []*types.Transaction{types.NewTx(&types.LegacyTx{Nonce: uint64(i)})}}
		if i%3 == 2 {
			body.Uncles = append(body.Uncles, &types.Header{
				Number: big.NewInt(int64(i - 1)), Difficulty: big.NewInt(7), BaseFee: big.NewInt(int64(i)), Extra: []byte("uncle"),
			})
		}
		h := &types.Header{
			ParentHash: parent, Number: big.NewInt(int64(i)), Difficulty: big.NewInt(int64(100 + i)),
			UncleHash: types.CalcUncleHash(body.Uncles),
		}
		raw, err := rlp.EncodeToBytes(&body)
		if err != nil {
			panic(err)
		}
		headers, bodies = append(headers, h), append(bodies, raw)
		parent = h.Hash()
	}
	return headers, bodies
}

// small returns an era1 file of n made blocks.
func small(n int) []byte {
	var w builder
	w.begin()
	headers, bodies := chain(n)
	for i := range headers {
		w.add(headers[i], bodies[i])
	}
	return w.finish(0)
}

func inMemory(data []byte) (*Era1, error) {
	return newEra1("test.era1", bytes.NewReader(data), int64(len(data)))
}

// write puts data in a file of that name and returns its path.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func must[T any](tb testing.TB) func(T, error) T {
	return func(v T, err error) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}
