package cache

import (
	"container/list"

	"github.com/maypok86/otter/v2"
)

// policy is what hit ratios are measured of.
type policy interface {
	// hit looks up a key, and puts it when it is not there.
	hit(k uint32) bool
}

// policies are this package's and those that it is compared with, each with room for
// as many keys.
var policies = []struct {
	name string
	make func(room int) policy
}{
	{"LRU", func(room int) policy { return &lru{room: room, entries: map[uint32]*list.Element{}} }},
	{"SIEVE", func(room int) policy { return &sieve{room: room, entries: map[uint32]*list.Element{}} }},
	{"W-TinyLFU", func(room int) policy {
		return tinyLFU{otter.Must(&otter.Options[uint32, struct{}]{
			MaximumSize: room, Executor: func(f func()) { f() }, // at once, not some time later
		})}
	}},
	{"S3-FIFO-here", func(n int) policy { return here{room(n)} }},
}

type here struct{ *S3FIFO[int, int] }

func (p here) hit(k uint32) bool {
	_, ok := p.Get(int(k))
	if !ok {
		p.Put(int(k), 0, 0)
	}
	return ok
}

type tinyLFU struct{ *otter.Cache[uint32, struct{}] }

func (p tinyLFU) hit(k uint32) bool {
	_, ok := p.GetIfPresent(k)
	if !ok {
		p.Set(k, struct{}{})
	}
	return ok
}

type lru struct {
	room    int
	entries map[uint32]*list.Element
	queue   list.List // the latest at the front
}

func (p *lru) hit(k uint32) bool {
	if e := p.entries[k]; e != nil {
		p.queue.MoveToFront(e)
		return true
	}
	if p.queue.Len() >= p.room {
		delete(p.entries, p.queue.Remove(p.queue.Back()).(uint32))
	}
	p.entries[k] = p.queue.PushFront(k)
	return false
}

// sieve is Algorithm 1 of Zhang et al., "SIEVE is Simpler than LRU", NSDI '24.
type sieve struct {
	room    int
	entries map[uint32]*list.Element
	queue   list.List // of *visited, the newest at the front
	hand    *list.Element
}

type visited struct {
	key uint32
	bit bool
}

func (p *sieve) hit(k uint32) bool {
	if e := p.entries[k]; e != nil {
		e.Value.(*visited).bit = true
		return true
	}
	if p.queue.Len() >= p.room {
		e := p.hand
		for {
			if e == nil {
				e = p.queue.Back()
			}
			v := e.Value.(*visited)
			if !v.bit {
				break
			}
			v.bit = false
			e = e.Prev()
		}
		p.hand = e.Prev()
		delete(p.entries, p.queue.Remove(e).(*visited).key)
	}
	p.entries[k] = p.queue.PushFront(&visited{key: k})
	return false
}
