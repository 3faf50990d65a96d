package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ommer/ommer/deploy/load"
	"github.com/ommer/ommer/deploy/testchain"
)

// What is asked, and where, is the load's. Both travel to the process that holds idle
// connections.
type (
	question = load.Question
	endpoint = load.Endpoint
)

// questions asks for every uncle of the generated chain, by number. The load looks at
// the hash of each answer: it must be cheap, and whole objects are compared by the
// tests.
func questions() ([]question, error) {
	blocks, err := testchain.Blocks()
	if err != nil {
		return nil, err
	}
	var qs []question
	for _, b := range blocks {
		for i, u := range b.Uncles() {
			qs = append(qs, question{
				Method: "eth_getUncleByBlockNumberAndIndex",
				Params: fmt.Sprintf(`["%#x","%#x"]`, b.NumberU64(), i),
				Hash:   u.Hash().Hex(),
			})
		}
	}
	if len(qs) == 0 {
		return nil, errors.New("the generated chain has no uncles")
	}
	return qs, nil
}

// newDialer makes a dialer of single calls, from these addresses in turn if there are any.
func newDialer(e endpoint, qs []question, sources ...net.IP) (*load.Dialer, error) {
	return load.NewDialer(load.DialerConfig{Endpoints: []endpoint{e}, Questions: qs, Sources: sources, Timeout: requestTimeout})
}

// requestTimeout is longer than any request takes while all of them wait for each other.
const requestTimeout = 30 * time.Second
