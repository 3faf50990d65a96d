package workers

import (
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// locate names a block by its hash where the view knows it, so that what is kept of it is
// true however the chain goes on; and says when it needs not be asked for, as it has no
// uncles. A final block keeps its number: it is kept for good under that, also when it
// has left the view.
func (p *Pool) locate(b schema.Selector, now time.Time) (_ schema.Selector, none bool) {
	switch b.Kind() {
	case schema.ByHash:
		return b, false
	case schema.ByNumber:
		if p.merged(b.Number()) {
			return b, true
		}
	case schema.ByTag:
		if p.cfg.Source.Ready() != nil {
			return b, false // what nodes say now cannot be known, and edges ask by tag to find that out
		}
		if p.cfg.Merged > 0 && b.Tag() != schema.Earliest {
			return b, true
		}
	}
	v := p.view(now)
	if v == nil {
		return b, false
	}
	at := v.At(b)
	switch {
	case at == nil:
		return b, false
	case !at.Uncled():
		return b, true
	case b.Kind() == schema.ByNumber && v.Final(at.Number):
		return b, false
	}
	return schema.BlockHash(at.Hash), false
}

// merged reports whether a number is that of a block of proof of stake.
func (p *Pool) merged(number uint64) bool {
	return p.cfg.Merged > 0 && number >= p.cfg.Merged
}

// view is what is known of the chain near its head, nil when nothing is.
func (p *Pool) view(now time.Time) *upstream.View {
	if p.viewer == nil {
		return nil
	}
	return p.viewer.View(now)
}
