package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// errKernel: a file of /proc does not look as its documentation says.
var errKernel = errors.New("cannot be read")

// kernel is the memory that the kernel says it uses, in bytes, of the whole machine.
type kernel struct {
	Available   int64 `json:"available_bytes"` // MemAvailable: what is left of all of it
	Slab        int64 `json:"slab_bytes"`
	KernelStack int64 `json:"kernel_stack_bytes"`
	PageTables  int64 `json:"page_tables_bytes"`
	Percpu      int64 `json:"percpu_bytes"`
	Buffers     int64 `json:"tcp_buffers_bytes"` // what TCP accounts for buffers; in slabs, mostly

	Listings int64 `json:"listings_bytes"` // left out of Slab by withoutListings

	caches map[string]cache // nil if this user may not read them
}

// cache is a cache of objects of one kind, of which slabs are made.
type cache struct {
	Objects int64 `json:"objects"`
	Size    int64 `json:"size"` // of one, in bytes
}

// own is what the figures add up to without counting anything twice.
func (k kernel) own() int64 { return k.Slab + k.KernelStack + k.PageTables + k.Percpu }

// minus is what came since an earlier reading.
func (k kernel) minus(b kernel) kernel {
	d := kernel{k.Available - b.Available, k.Slab - b.Slab, k.KernelStack - b.KernelStack, k.PageTables - b.PageTables, k.Percpu - b.Percpu, k.Buffers - b.Buffers, k.Listings - b.Listings, nil}
	if k.caches != nil && b.caches != nil {
		d.caches = map[string]cache{}
		for name, c := range k.caches {
			d.caches[name] = cache{c.Objects - b.caches[name].Objects, c.Size}
		}
	}
	return d
}

// withoutListings leaves out what came because somebody, a monitor perhaps, has listed
// the open files of processes: an inode of /proc for each file, the security module's
// part of it and a directory entry.
func (k kernel) withoutListings() kernel {
	listed := k.caches["proc_inode_cache"].Objects
	if listed <= 0 {
		return k
	}
	k.caches = maps.Clone(k.caches)
	for _, name := range []string{"proc_inode_cache", "lsm_inode_cache", "dentry"} {
		if c, ok := k.caches[name]; ok {
			k.Slab -= listed * c.Size
			k.Listings += listed * c.Size
			c.Objects -= listed
			k.caches[name] = c
		}
	}
	return k
}

// readKernel reads /proc/meminfo, /proc/net/sockstat and, if it may, /proc/slabinfo.
func readKernel() (k kernel, err error) {
	for _, r := range []struct {
		name  string
		parse func([]byte) error
	}{{"/proc/meminfo", k.parseMeminfo}, {"/proc/net/sockstat", k.parseSockstat}, {"/proc/slabinfo", k.parseSlabinfo}} {
		b, err := os.ReadFile(r.name)
		if os.IsPermission(err) || os.IsNotExist(err) && r.name == "/proc/slabinfo" {
			continue
		}
		if err == nil {
			err = r.parse(b)
		}
		if err != nil {
			return k, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return k, nil
}

// parseMeminfo reads lines as proc(5) has them, "Slab:   296512 kB".
func (k *kernel) parseMeminfo(b []byte) error {
	to := map[string]*int64{"MemAvailable": &k.Available, "Slab": &k.Slab, "KernelStack": &k.KernelStack, "PageTables": &k.PageTables, "Percpu": &k.Percpu}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		p, wanted := to[name]
		if !wanted {
			continue
		}
		number, inKB := strings.CutSuffix(strings.TrimSpace(value), " kB")
		n, err := strconv.ParseInt(number, 10, 50)
		if !inKB || err != nil || n < 0 {
			return fmt.Errorf("%s %w: %.50q", name, errKernel, line)
		}
		*p = n << 10
		delete(to, name)
	}
	for name := range to {
		return fmt.Errorf("%s %w: there is none", name, errKernel)
	}
	return nil
}

// parseSockstat reads "TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 147", the last one in
// pages (the kernel's net/ipv4/proc.c).
func (k *kernel) parseSockstat(b []byte) error {
	_, rest, found := bytes.Cut(b, []byte("\nTCP: "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	_, pages, hasMem := bytes.Cut(line, []byte(" mem "))
	n, err := strconv.ParseInt(string(pages), 10, 40)
	if !found || !hasMem || err != nil {
		return fmt.Errorf("TCP %w: %.100q", errKernel, line)
	}
	k.Buffers = n * int64(os.Getpagesize())
	return nil
}

// parseSlabinfo reads name, active objects, all objects, and the size of one
// (slabinfo(5)). A size is that of the object with what the kernel puts around it.
func (k *kernel) parseSlabinfo(b []byte) error {
	lines := strings.Split(string(b), "\n")
	if !strings.HasPrefix(lines[0], "slabinfo - version: 2.") {
		return fmt.Errorf("version %w: %.100q", errKernel, lines[0])
	}
	caches := map[string]cache{}
	for _, line := range lines[1:] {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) < 4 {
			return fmt.Errorf("line %w: %.100q", errKernel, line)
		}
		objects, err1 := strconv.ParseInt(fields[1], 10, 50)
		size, err2 := strconv.ParseInt(fields[3], 10, 40)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("line %w: %.100q", errKernel, line)
		}
		caches[fields[0]] = cache{objects, size}
	}
	k.caches = caches
	return nil
}

// perConn is how many objects of a cache came with each connection.
type perConn struct {
	Cache   string  `json:"cache"`
	Objects float64 `json:"objects"`
	Size    int64   `json:"size"`
}

func (p perConn) bytes() float64 { return p.Objects * float64(p.Size) }

// objectsPerConn returns the caches that connections have filled, the largest first:
// those that grew by about as many objects as there are connections, or more. What
// others do to the machine meanwhile stays out of it, unless it is as much.
func (k kernel) objectsPerConn(conns int) []perConn {
	const least = 0.9
	var list []perConn
	for name, c := range k.caches {
		if n := float64(c.Objects) / float64(conns); n >= least {
			list = append(list, perConn{name, n, c.Size})
		}
	}
	slices.SortFunc(list, func(a, b perConn) int {
		if a.bytes() != b.bytes() {
			return int(b.bytes() - a.bytes())
		}
		return strings.Compare(a.Cache, b.Cache)
	})
	return list
}
