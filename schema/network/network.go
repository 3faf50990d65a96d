package network

import "slices"

// Network is a chain and how it is treated. What is 0 is not known.
type Network struct {
	// Name is a token of letters, digits, - and _: it is part of subjects, and what keys
	// and metrics name the network by.
	Name string
	// ChainID is what eth_chainId of each node must answer, EIP-155. 0: that of the first
	// node that answers.
	ChainID uint64
	// Merged is the number of the first block of proof of stake: from it on no block has
	// uncles, EIP-3675. 0: not known, or there is none.
	Merged uint64
	// Finality is how many blocks deep one is taken for final. 0: what nodes call
	// finalized is.
	Finality uint64
}

// known are the networks that need nothing but their name. Where proof of stake begins is
// the activation block of Paris in reth (alloy-hardforks) and of merge in Hardhat; the
// points at which geth prunes (core/history) are 15537393, which is the last block of
// proof of work, and 1450409.
//
// Classic has proof of work and no finality. Its deepest reorganisation was one of more
// than 7,000 blocks, on 29 August 2020, upon which its maintainers asked for more than
// 12,000 confirmations: two days.
var known = [...]Network{
	{Name: "mainnet", ChainID: 1, Merged: 15537394},
	{Name: "sepolia", ChainID: 11155111, Merged: 1450409},
	{Name: "hoodi", ChainID: 560048, Merged: 1}, // its terminal total difficulty is 0
	{Name: "classic", ChainID: 61, Finality: 12000},
}

// Known returns the public network of a name.
func Known(name string) (Network, bool) {
	i := slices.IndexFunc(known[:], func(n Network) bool { return n.Name == name })
	if i < 0 {
		return Network{}, false
	}
	return known[i], true
}

// Named returns the public network of a name, or one of which nothing else is known.
func Named(name string) Network {
	if n, ok := Known(name); ok {
		return n
	}
	return Network{Name: name}
}
