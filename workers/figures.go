package workers

import "time"

// Figures are what a Pool shows beside its metrics, to be read by people.
type Figures struct {
	CacheEntries int64             `json:"cache_entries"`
	CacheBytes   int64             `json:"cache_bytes"`
	CacheLimit   int64             `json:"cache_limit_bytes"`
	Lookups      map[string]uint64 `json:"lookups"` // by how they were met
	Waiting      int64             `json:"waiting"` // for the source
	Fetches      int64             `json:"fetches"` // under way

	// The chain as followed; 0 when it is unknown, and for a tag that names no block.
	Head      uint64 `json:"head,omitempty"`
	Safe      uint64 `json:"safe,omitempty"`
	Finalized uint64 `json:"finalized,omitempty"`
	Reorgs    uint64 `json:"reorgs,omitempty"`
	LastReorg uint64 `json:"last_reorg,omitempty"` // in blocks
}

// Figures adds up what the shards count.
func (p *Pool) Figures() Figures {
	f := Figures{Lookups: map[string]uint64{}}
	for _, s := range p.slots {
		f.CacheEntries += s.entries.Load()
		f.CacheBytes += s.bytes.Load()
		f.CacheLimit += s.limit.Load()
		f.Waiting += s.waiting.Load()
		f.Fetches += int64(s.fetches.Load())
		for i, name := range sourceNames {
			f.Lookups[name] += s.count.lookups[i].Load()
		}
	}
	if v := p.view(time.Now()); v != nil {
		f.Head = v.Latest()
		f.Safe, _ = v.Safe()
		f.Finalized, _ = v.Finalized()
		f.Reorgs, f.LastReorg = v.Reorgs()
	}
	return f
}
