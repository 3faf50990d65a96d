package network_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/params"

	"github.com/ommer/ommer/schema/network"
)

// What go-ethereum knows of the same networks does not contradict.
func TestKnownAgreesWithGoEthereum(t *testing.T) {
	for name, theirs := range map[string]*params.ChainConfig{
		"mainnet": params.MainnetChainConfig, "sepolia": params.SepoliaChainConfig, "hoodi": params.HoodiChainConfig,
	} {
		n, ok := network.Known(name)
		if !ok || n.Name != name || n.ChainID != theirs.ChainID.Uint64() {
			t.Errorf("%s: %+v, %v, want chain %v", name, n, ok, theirs.ChainID)
		}
		if n.Merged == 0 || n.Finality != 0 {
			t.Errorf("%s has merged, so its nodes tell what is final: %+v", name, n)
		}
		// The fork that marks the merge for peers was scheduled for after it.
		if split := theirs.MergeNetsplitBlock; split != nil && split.Sign() > 0 && n.Merged > split.Uint64() {
			t.Errorf("%s merged at %d, and peers were told at %v", name, n.Merged, split)
		}
	}
	hoodi := core.DefaultHoodiGenesisBlock()
	if params.HoodiChainConfig.TerminalTotalDifficulty.Cmp(new(big.Int).Set(hoodi.Difficulty)) > 0 {
		t.Error("hoodi's first block is not of proof of stake")
	}
}

func TestClassic(t *testing.T) {
	n, ok := network.Known("classic")
	if want := (network.Network{Name: "classic", ChainID: 61, Finality: 12000}); !ok || n != want {
		t.Errorf("got %+v, %v, want %+v", n, ok, want)
	}
}

func TestNamed(t *testing.T) {
	if n := network.Named("mainnet"); n.ChainID != 1 {
		t.Errorf("mainnet: %+v", n)
	}
	for _, name := range []string{"local", "Mainnet", ""} {
		if got, want := network.Named(name), (network.Network{Name: name}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
