package upstream

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// terms are on what terms a node is asked. They stand behind the # of its URL, which
// no request carries (RFC 9110 section 4.2.5), written like a query:
//
//	https://node.example/KEY#priority=1&weight=2&rps=100&in-flight=8&batch=10
type terms struct {
	priority int     // 1 is asked first; default: the place in the list
	weight   float64 // of two of the same priority, one of weight 2 has twice as much to do
	rate     float64 // calls per second, 0 for no bound
	inFlight int     // round trips at a time
	batch    int     // blocks in one of them
}

// Bounds of terms.
const (
	maxPriority = 1000
	maxWeight   = 1000
	maxRate     = 1e6
	maxInFlight = 1024
	maxBatch    = 300 // three calls each: nodes answer at most 1000
)

// splitTerms takes the terms off a URL. Its errors repeat nothing that stands before
// the #.
func splitTerms(raw string, preset terms) (bare string, t terms, err error) {
	bare, fragment, _ := strings.Cut(raw, "#")
	values, err := url.ParseQuery(fragment)
	if err != nil {
		return bare, t, fmt.Errorf("behind the # it is not written like a query")
	}
	t = preset
	number := func(name string, least, most float64) (float64, error) {
		v, err := strconv.ParseFloat(values.Get(name), 64)
		if err != nil || math.IsNaN(v) || v < least || v > most {
			return 0, fmt.Errorf("%s must be a number from %v to %v", name, least, most)
		}
		return v, nil
	}
	whole := func(name string, most float64) (int, error) {
		v, err := number(name, 1, most)
		if err == nil && v != math.Trunc(v) {
			err = fmt.Errorf("%s must be a whole number", name)
		}
		return int(v), err
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // the same error each time
	for _, name := range names {
		switch name {
		case "priority":
			t.priority, err = whole(name, maxPriority)
		case "weight":
			t.weight, err = number(name, 0.001, maxWeight)
		case "rps":
			t.rate, err = number(name, 0.001, maxRate)
		case "in-flight":
			t.inFlight, err = whole(name, maxInFlight)
		case "batch":
			t.batch, err = whole(name, maxBatch)
		default:
			err = fmt.Errorf("%.20q behind the # is none of priority, weight, rps, in-flight and batch", name)
		}
		if err != nil {
			return bare, t, err
		}
	}
	return bare, t, nil
}
