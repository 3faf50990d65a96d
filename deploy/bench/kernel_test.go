package main

import (
	"errors"
	"maps"
	"net"
	"os"
	"reflect"
	"runtime"
	"testing"
)

func TestParseMeminfo(t *testing.T) {
	const good = "MemTotal: 99 kB\nMemAvailable:  2000 kB\nSlab:   300 kB\nSReclaimable: 7 kB\nKernelStack: 40 kB\nPageTables:   50 kB\nSecPageTables: 9 kB\nPercpu: 6 kB\nHugePages_Total: 0\n"
	var k kernel
	if err := k.parseMeminfo([]byte(good)); err != nil {
		t.Fatal(err)
	}
	want := kernel{Available: 2000 << 10, Slab: 300 << 10, KernelStack: 40 << 10, PageTables: 50 << 10, Percpu: 6 << 10}
	if !reflect.DeepEqual(k, want) {
		t.Errorf("got %+v, want %+v", k, want)
	}
	if got := k.own(); got != 396<<10 {
		t.Errorf("the kernel's own: %d", got)
	}
	for name, text := range map[string]string{
		"empty":      "",
		"one missed": "MemAvailable: 1 kB\nSlab: 1 kB\nKernelStack: 1 kB\nPageTables: 1 kB\n",
		"other unit": "Slab: 1 MB\n",
		"no number":  "Slab: x kB\n",
		"negative":   "Slab: -1 kB\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := new(kernel).parseMeminfo([]byte(text)); !errors.Is(err, errKernel) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestParseSockstat(t *testing.T) {
	var k kernel
	err := k.parseSockstat([]byte("sockets: used 15\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 147\nUDP: inuse 0 mem 9\n"))
	if want := int64(147 * os.Getpagesize()); err != nil || k.Buffers != want {
		t.Errorf("got %d, %v, want %d", k.Buffers, err, want)
	}
	for name, text := range map[string]string{
		"empty":     "",
		"no TCP":    "sockets: used 15\nUDP: inuse 0 mem 9\n",
		"no mem":    "sockets: used 1\nTCP: inuse 1 orphan 0\n",
		"no number": "sockets: used 1\nTCP: inuse 1 mem x\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := new(kernel).parseSockstat([]byte(text)); !errors.Is(err, errKernel) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestParseSlabinfo(t *testing.T) {
	const head = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>\n"
	var k kernel
	err := k.parseSlabinfo([]byte(head + "TCP   20098  20100   2368   13    8 : tunables    0    0    0 : slabdata   1546   1546      0\nfilp  5 6 192 21 1\n"))
	want := map[string]cache{"TCP": {20098, 2368}, "filp": {5, 192}}
	if err != nil || !maps.Equal(k.caches, want) {
		t.Errorf("got %v, %v, want %v", k.caches, err, want)
	}
	for name, text := range map[string]string{
		"empty":     "",
		"version":   "slabinfo - version: 3.0\n",
		"short":     head + "TCP 1 2\n",
		"no number": head + "TCP many 1 2 3\n",
		"no size":   head + "TCP 1 1 big 3\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := new(kernel).parseSlabinfo([]byte(text)); !errors.Is(err, errKernel) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestObjectsPerConn(t *testing.T) {
	before := kernel{Slab: 100, caches: map[string]cache{"TCP": {1000, 2368}, "filp": {7, 192}, "other": {0, 64}, "less": {500, 32}}}
	after := kernel{Slab: 900, caches: map[string]cache{"TCP": {3000, 2368}, "filp": {2007, 192}, "other": {880, 64}, "less": {0, 32}, "new": {1000, 8}}}
	d := after.minus(before)
	if d.Slab != 800 {
		t.Errorf("slabs grew by %d", d.Slab)
	}
	want := []perConn{{"TCP", 2, 2368}, {"filp", 2, 192}, {"new", 1, 8}}
	if got := d.objectsPerConn(1000); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	after.caches = nil // not to be read by this user
	if d := after.minus(before); d.objectsPerConn(1000) != nil {
		t.Errorf("without the caches: %v", d.caches)
	}
}

func TestWithoutListings(t *testing.T) {
	k := kernel{Slab: 10_000, caches: map[string]cache{"proc_inode_cache": {5, 700}, "dentry": {11, 200}, "TCP": {6, 2000}}}
	got := k.withoutListings()
	want := kernel{Slab: 5500, Listings: 4500, caches: map[string]cache{"proc_inode_cache": {0, 700}, "dentry": {6, 200}, "TCP": {6, 2000}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, k := range []kernel{{Slab: 1}, want} {
		if got := k.withoutListings(); !reflect.DeepEqual(got, k) {
			t.Errorf("nothing was listed: got %+v, want %+v", got, k)
		}
	}
}

// The sockets that a test opens are seen in the machine's caches.
func TestReadKernel(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	before, err := readKernel()
	if err != nil {
		t.Fatal(err)
	}
	if before.Slab <= 0 || before.Available <= 0 || before.PageTables <= 0 {
		t.Errorf("got %+v", before)
	}
	if before.caches == nil {
		t.Skip("/proc/slabinfo is not for this user")
	}
	// More than others close, and a merged cache has at hand.
	const sockets = 400
	for range sockets {
		ln, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
	}
	after, err := readKernel()
	if err != nil {
		t.Fatal(err)
	}
	if after.caches["TCP"].Size < 1000 || after.caches["TCP"].Objects < sockets {
		t.Errorf("TCP %+v, want at least %d", after.caches["TCP"], sockets)
	}
}
