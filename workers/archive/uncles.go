package archive

import (
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"runtime/debug"
	"sort"
	"unsafe"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// Uncles is an open uncles file, see the package comment for its format. It is read
// through a mapping into memory: what is asked for often stays there, and the file
// may be larger than the memory. A file that is cut short, or cannot be read, while it
// is open makes lookups fail and nothing worse.
type Uncles struct {
	path   string
	data   []byte // all of it
	closer io.Closer
	head   head
	at     sections
	ranges []Range

	places, hashes, lists []byte
}

// OpenUncles opens the uncles file at path. It reads all but the lists, which takes
// milliseconds, and checks them; the lists are checked one by one as they are asked
// for.
func OpenUncles(path string) (*Uncles, error) {
	data, closer, err := mapFile(path)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	u, err := newUncles(path, data)
	if err != nil {
		_ = closer.Close() // only read from
		return nil, err
	}
	u.closer = closer
	return u, nil
}

// newUncles checks the layout of a file.
func newUncles(path string, data []byte) (u *Uncles, err error) {
	u = &Uncles{path: path, data: data}
	if err := u.readable(u.load); err != nil {
		return nil, err
	}
	return u, nil
}

func (u *Uncles) load() (err error) {
	if u.head, err = parseHead(u.data); err != nil {
		return err
	}
	if u.at, err = u.head.sections(int64(len(u.data))); err != nil {
		return err
	}
	ranges := u.data[u.at.ranges:u.at.places]
	u.places = u.data[u.at.places:u.at.hashes]
	u.hashes = u.data[u.at.hashes:u.at.lists]
	u.lists = u.data[u.at.lists:u.at.end]
	for _, s := range []struct {
		name string
		data []byte
		off  int64
		sum  uint32
	}{
		{"ranges", ranges, u.at.ranges, u.head.rangesSum},
		{"places", u.places, u.at.places, u.head.placesSum},
		{"hashes", u.hashes, u.at.hashes, u.head.hashesSum},
	} {
		if got := checksum(s.data); got != s.sum {
			return damaged(s.off, "%s: the checksum of %d bytes is %#08x, want %#08x", s.name, len(s.data), got, s.sum)
		}
	}
	if err := u.loadRanges(ranges); err != nil {
		return err
	}
	if err := u.checkPlaces(); err != nil {
		return err
	}
	return u.checkHashes()
}

func (u *Uncles) loadRanges(b []byte) error {
	u.ranges = make([]Range, u.head.ranges)
	for i := range u.ranges {
		r := parseRange(b[rangeSize*i:])
		if r.First > r.Last || r.Last > maxNumber || i > 0 && r.First <= u.ranges[i-1].Last+1 {
			return damaged(u.at.ranges+int64(rangeSize*i), "ranges: %d to %d", r.First, r.Last)
		}
		u.ranges[i] = r
	}
	return nil
}

// checkPlaces checks that the places ascend, within the ranges and the lists.
func (u *Uncles) checkPlaces() error {
	left := u.ranges
	var next, end uint64 // the least that a number and an offset may be
	for i := range u.count() {
		p, off := u.place(i), u.at.places+int64(placeSize*i)
		for len(left) > 0 && p.number > left[0].Last {
			left = left[1:]
		}
		switch {
		case p.number < next || len(left) == 0 || p.number < left[0].First:
			return damaged(off, "places: block %d is out of order or in no range", p.number)
		case i == 0 && p.offset != 0 || i > 0 && p.offset <= end+listHead || p.offset >= u.head.lists:
			return damaged(off, "places: block %d is said to have its list at %d of %d", p.number, p.offset, u.head.lists)
		}
		next, end = p.number+1, p.offset
	}
	if u.count() == 0 && u.head.lists > 0 {
		return damaged(u.at.lists, "lists: %d bytes that belong to no place", u.head.lists)
	}
	return nil
}

func (u *Uncles) checkHashes() error {
	for i := range u.count() {
		key := u.hash(i)
		if int(uint32(key)) >= u.count() || i > 0 && key <= u.hash(i-1) {
			return damaged(u.at.hashes+int64(hashSize*i), "hashes: entry %#016x is out of order or of no place", key)
		}
	}
	return nil
}

// count is the number of places.
func (u *Uncles) count() int { return len(u.places) / placeSize }

func (u *Uncles) place(i int) place { return parsePlace(u.places[placeSize*i:]) }

func (u *Uncles) hash(i int) uint64 { return le.Uint64(u.hashes[hashSize*i:]) }

// ByNumber appends to dst the RLP of the list of uncles of block n, which is empty
// where the block has none. held is false when the file does not say.
func (u *Uncles) ByNumber(dst []byte, n uint64) (list []byte, held bool, err error) {
	if !u.Covers(n) {
		return dst, false, nil
	}
	list, held = dst, true
	err = u.readable(func() (err error) {
		i := sort.Search(u.count(), func(i int) bool { return le.Uint64(u.places[placeSize*i:]) >= n })
		if i == u.count() || u.place(i).number != n {
			list = append(dst, emptyList...)
			return nil
		}
		_, found, err := u.record(i)
		list = append(dst, found...)
		return err
	})
	return list, held && err == nil, err
}

// ByHash appends to dst the RLP of the list of uncles of the block with hash h. held
// is false when the file does not have it, which says nothing: a block without uncles
// is not in it.
func (u *Uncles) ByHash(dst []byte, h common.Hash) (list []byte, held bool, err error) {
	list = dst
	err = u.readable(func() error {
		key := hashKey(h)
		for i := u.firstHash(key); i < u.count() && u.hash(i)>>32 == key>>32; i++ {
			hash, found, err := u.record(int(uint32(u.hash(i))))
			if err != nil {
				return err
			}
			if hash == h {
				list, held = append(dst, found...), true
				return nil
			}
		}
		return nil
	})
	return list, held, err
}

// firstHash is the position of the first entry that is not less than key.
func (u *Uncles) firstHash(key uint64) int {
	return sort.Search(u.count(), func(i int) bool { return u.hash(i) >= key })
}

// record returns the hash and the list of the block with place i, from the mapping.
func (u *Uncles) record(i int) (hash common.Hash, list []byte, err error) {
	begin, end := u.place(i).offset, u.head.lists
	if i+1 < u.count() {
		end = u.place(i + 1).offset
	}
	off := u.at.lists + int64(begin)
	if end-begin <= listHead || end-begin > listHead+maxList {
		return hash, nil, damaged(off, "lists: %d bytes for block %d", end-begin, u.place(i).number)
	}
	b := u.lists[begin:end]
	if recordSum(b) != le.Uint32(b[common.HashLength:]) {
		return hash, nil, damaged(off, "lists: the checksum of block %d is wrong", u.place(i).number)
	}
	return common.Hash(b), b[listHead:], nil
}

// recordSum is the checksum of what stands among the lists, without itself.
func recordSum(b []byte) uint32 {
	return crc32.Update(checksum(b[:common.HashLength]), castagnoli, b[listHead:])
}

// DecodeUncles reads what ByNumber and ByHash return.
func DecodeUncles(list []byte) (uncles []*types.Header, err error) {
	if err := rlp.DecodeBytes(list, &uncles); err != nil {
		return nil, fmt.Errorf("archive: %w: uncles: %w", ErrDamaged, err)
	}
	return uncles, nil
}

// readable calls f, which reads from the mapping, and adds the file to its error. A
// page that cannot be read, because the file has been cut short or the disk fails, ends
// f as damage to the file; the system would end the process for it.
func (u *Uncles) readable(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		v := recover()
		if fault, ok := v.(interface {
			runtime.Error
			Addr() uintptr
		}); ok && u.maps(fault.Addr()) {
			err = damaged(int64(fault.Addr()-u.base()), "the file can no longer be read: cut short, or the disk failed")
		} else if v != nil {
			panic(v)
		}
		if err != nil {
			err = fmt.Errorf("archive: %s: %w", u.path, err)
		}
	}()
	return f()
}

// Covers reports whether the file says which uncles block n has.
func (u *Uncles) Covers(n uint64) bool {
	i := sort.Search(len(u.ranges), func(i int) bool { return u.ranges[i].Last >= n })
	return i < len(u.ranges) && u.ranges[i].First <= n
}

// Path is where the file was opened.
func (u *Uncles) Path() string { return u.path }

// Chain is the chain that the blocks are of.
func (u *Uncles) Chain() Chain { return u.head.chain }

// Ranges are the blocks whose uncles the file has, in order. They must not be changed.
func (u *Uncles) Ranges() []Range { return u.ranges }

// Blocks is how many blocks the file covers.
func (u *Uncles) Blocks() (n uint64) {
	for _, r := range u.ranges {
		n += r.Blocks()
	}
	return n
}

// Uncled is how many of the blocks have uncles.
func (u *Uncles) Uncled() uint64 { return u.head.places }

// Count is how many uncles the file holds.
func (u *Uncles) Count() uint64 { return u.head.uncles }

// Size is the length of the file in bytes, IndexSize what of it is not uncles.
func (u *Uncles) Size() int64 { return u.at.end }

// IndexSize is the length of the file without its lists.
func (u *Uncles) IndexSize() int64 { return u.at.lists }

// Digest is the SHA-256 that the file states for its content; Verify computes it. Two
// files with the same one and the same chain are the same.
func (u *Uncles) Digest() [32]byte { return u.head.digest }

// Close gives the mapping back. No method may be running or be called afterwards.
func (u *Uncles) Close() error {
	if u.closer == nil {
		return nil
	}
	return u.closer.Close()
}

// maps reports whether an address is one of the file's.
func (u *Uncles) maps(addr uintptr) bool {
	return addr >= u.base() && addr-u.base() < uintptr(len(u.data))
}

func (u *Uncles) base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(u.data))) }
