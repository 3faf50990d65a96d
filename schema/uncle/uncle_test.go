package uncle

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// mainnet0x299 is the uncle at index 0 of block 0x29c of the main network.
func mainnet0x299() *types.Header {
	return &types.Header{
		ParentHash:  common.HexToHash("0xa779859b1ee558258b7008bbabff272280136c5dd3eb3ea3bfa8f6ae03bf91e5"),
		UncleHash:   common.HexToHash("0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"),
		Coinbase:    common.HexToAddress("0x5bf5e9cf9b456d6591073513de7fd69a9bef04bc"),
		Root:        common.HexToHash("0x2604fbf5183f5360da249b51f1b9f1e0f315d2ff3ffa1a4143ff221ad9ca1fec"),
		TxHash:      common.HexToHash("0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"),
		ReceiptHash: common.HexToHash("0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"),
		Difficulty:  big.NewInt(0x57f117f5c),
		Number:      big.NewInt(0x299),
		GasLimit:    0x1388,
		Time:        0x55ba4827,
		Extra:       []byte("Geth/v1.0.0/windows/go1.4.2"),
		MixDigest:   common.HexToHash("0x4500aa4ee2b3044a155252e35273770edeb2ab6f8cb19ca8e732771484462169"),
		Nonce:       types.BlockNonce{0x24, 0x73, 0x27, 0x73, 0x61, 0x81, 0x92, 0xac},
	}
}

func TestAppendMainnet(t *testing.T) {
	zeros := bytes.Repeat([]byte("00"), types.BloomByteLength)
	want := `{"difficulty":"0x57f117f5c","extraData":"0x476574682f76312e302e302f77696e646f77732f676f312e342e32",` +
		`"gasLimit":"0x1388","gasUsed":"0x0","hash":"0x932bdf904546a2287a2c9b2ede37925f698a7657484b172d4e5184f80bdd464d",` +
		`"logsBloom":"0x` + string(zeros) + `","miner":"0x5bf5e9cf9b456d6591073513de7fd69a9bef04bc",` +
		`"mixHash":"0x4500aa4ee2b3044a155252e35273770edeb2ab6f8cb19ca8e732771484462169","nonce":"0x24732773618192ac",` +
		`"number":"0x299","parentHash":"0xa779859b1ee558258b7008bbabff272280136c5dd3eb3ea3bfa8f6ae03bf91e5",` +
		`"receiptsRoot":"0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",` +
		`"sha3Uncles":"0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347","size":"0x21d",` +
		`"stateRoot":"0x2604fbf5183f5360da249b51f1b9f1e0f315d2ff3ffa1a4143ff221ad9ca1fec","timestamp":"0x55ba4827",` +
		`"totalDifficulty":null,"transactionsRoot":"0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",` +
		`"uncles":[]}`
	got := Append([]byte("x"), mainnet0x299())
	if string(got) != "x"+want {
		t.Errorf("got  %s\nwant x%s", got, want)
	}
}

func TestAppendFields(t *testing.T) {
	legacy := []string{
		"difficulty", "extraData", "gasLimit", "gasUsed", "hash", "logsBloom", "miner", "mixHash", "nonce", "number",
		"parentHash", "receiptsRoot", "sha3Uncles", "size", "stateRoot", "timestamp", "totalDifficulty",
		"transactionsRoot", "uncles",
	}
	london := append(slices.Clone(legacy), "baseFeePerGas")
	later := append(slices.Clone(london), "withdrawalsRoot", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot",
		"requestsHash", "blockAccessListHash", "slotNumber")
	one, root := uint64(1), common.Hash{1}
	for _, tt := range []struct {
		name string
		edit func(h *types.Header)
		want []string
	}{
		{"before London", func(*types.Header) {}, legacy},
		{"London", func(h *types.Header) { h.BaseFee = big.NewInt(7) }, london},
		{"London with a base fee of zero", func(h *types.Header) { h.BaseFee = new(big.Int) }, london},
		{"uncles of its own", func(h *types.Header) { h.UncleHash = common.Hash{9} }, legacy},
		{"every fork so far", func(h *types.Header) {
			h.BaseFee, h.WithdrawalsHash, h.BlobGasUsed, h.ExcessBlobGas = big.NewInt(7), &root, &one, &one
			h.ParentBeaconRoot, h.RequestsHash, h.BlockAccessListHash, h.SlotNumber = &root, &root, &root, &one
		}, later},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := mainnet0x299()
			tt.edit(h)
			slices.Sort(tt.want)
			if got := keys(t, Append(nil, h)); !slices.Equal(got, tt.want) {
				t.Errorf("keys\n got %q\nwant %q", got, tt.want)
			}
		})
	}
}

// keys lists the members of a JSON object in the order in which they are written.
func keys(t *testing.T, object []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(object))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		t.Fatalf("no object: %v %v", tok, err)
	}
	var names []string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

func TestAppendNilNumbers(t *testing.T) {
	h := &types.Header{}
	checkRoundTrip(t, h)
}

func TestAppendPanicsOnNegative(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a negative number was rendered")
		}
	}()
	Append(nil, &types.Header{Number: big.NewInt(-1)})
}

// checkRoundTrip reads the rendered object the way go-ethereum's ethclient does
// and compares what must be the same.
func checkRoundTrip(t *testing.T, h *types.Header) {
	t.Helper()
	object := Append(nil, h)
	var back types.Header
	if err := json.Unmarshal(object, &back); err != nil {
		t.Fatalf("go-ethereum cannot read %s: %v", object, err)
	}
	if got, want := back.Hash(), h.Hash(); got != want {
		t.Errorf("the hash of the header read back is %v, want %v\n%s", got, want, object)
	}
	var rest struct {
		Hash            common.Hash     `json:"hash"`
		Size            string          `json:"size"`
		TotalDifficulty json.RawMessage `json:"totalDifficulty"`
		Uncles          json.RawMessage `json:"uncles"`
	}
	if err := json.Unmarshal(object, &rest); err != nil {
		t.Fatal(err)
	}
	if rest.Hash != h.Hash() {
		t.Errorf("hash member %v, want %v", rest.Hash, h.Hash())
	}
	if want := fmt.Sprintf("0x%x", types.NewBlockWithHeader(h).Size()); rest.Size != want {
		t.Errorf("size %s, want %s", rest.Size, want)
	}
	if string(rest.TotalDifficulty) != "null" || string(rest.Uncles) != "[]" {
		t.Errorf("totalDifficulty %s, uncles %s; want null and []", rest.TotalDifficulty, rest.Uncles)
	}
	if names := keys(t, object); !slices.IsSorted(names) {
		t.Errorf("keys are not in order: %q", names)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte("\xff\xff\x00\x01 some seed of the header"), []byte("extra"))
	f.Add(bytes.Repeat([]byte{0xfe}, 700), bytes.Repeat([]byte{1}, 33))
	f.Fuzz(func(t *testing.T, seed, extra []byte) {
		checkRoundTrip(t, headerFrom(seed, extra))
	})
}

// headerFrom fills a header from arbitrary bytes: the first one chooses the fork,
// the rest go to the fields in turn, zeros when they run out.
func headerFrom(seed, extra []byte) *types.Header {
	take := func(dst []byte) {
		n := copy(dst, seed)
		seed = seed[n:]
	}
	num := func() uint64 {
		var b [8]byte
		take(b[:])
		return binary.BigEndian.Uint64(b[:]) >> (b[7] % 64) // every length of a quantity
	}
	hash := func() *common.Hash {
		var h common.Hash
		take(h[:])
		return &h
	}
	large := func() *big.Int {
		return new(big.Int).Rsh(new(big.Int).SetBytes(hash()[:]), uint(num()%256))
	}
	var forks [1]byte
	take(forks[:])
	h := &types.Header{
		ParentHash: *hash(), UncleHash: *hash(), Root: *hash(), TxHash: *hash(), ReceiptHash: *hash(), MixDigest: *hash(),
		Difficulty: large(), Number: large(), GasLimit: num(), GasUsed: num(), Time: num(), Extra: extra,
	}
	take(h.Coinbase[:])
	take(h.Nonce[:])
	take(h.Bloom[:])
	for bit, set := range []func(){
		func() { h.BaseFee = large() },
		func() { h.WithdrawalsHash = hash() },
		func() { n := num(); h.BlobGasUsed = &n },
		func() { n := num(); h.ExcessBlobGas = &n },
		func() { h.ParentBeaconRoot = hash() },
		func() { h.RequestsHash = hash() },
		func() { h.BlockAccessListHash = hash() },
		func() { n := num(); h.SlotNumber = &n },
	} {
		if forks[0]&(1<<bit) != 0 {
			set()
		}
	}
	return h
}

func TestSizeHint(t *testing.T) {
	h := mainnet0x299()
	h.Difficulty = new(big.Int).Lsh(big.NewInt(1), 79)
	h.BaseFee = new(big.Int).Lsh(big.NewInt(1), 79)
	h.Number, h.GasLimit, h.GasUsed, h.Time = new(big.Int).SetUint64(1<<63), 1<<63, 1<<63, 1<<63
	h.Extra = make([]byte, 32)
	if n := len(Append(nil, h)); n > SizeHint {
		t.Errorf("a large uncle takes %d bytes, SizeHint is %d", n, SizeHint)
	}
}

func BenchmarkAppend(b *testing.B) {
	h, dst := mainnet0x299(), make([]byte, 0, SizeHint)
	b.ReportAllocs()
	for b.Loop() {
		Append(dst, h)
	}
}
