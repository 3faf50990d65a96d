// Package cache is a cache bounded in bytes for a single owner.
//
// An S3FIFO has no lock: one goroutine at a time uses it, which is what the actor that
// owns it guarantees. It knows nothing of what it keeps, and never drops an entry for
// its age.
//
// # The policy
//
// It is S3-FIFO (Yang et al., SOSP '23) with one change. What uncle lookups ask of a
// policy is that a scan leaves the cache alone: somebody who walks over all blocks with
// uncles asks for a million of them once, while others go on asking for the popular
// ones. Such a client does not ask for a block once, though, but two or three times in
// a row, for its first uncle, its second, and the one that is not there. SIEVE (NSDI
// '24), which was here before, takes the second of these for popularity, S3-FIFO as
// published the third: they keep the scan and lose the rest. Here hits do not count
// while an entry is among the newest hundredth: they are taken as part of the question
// that brought it in.
//
// Hit ratios in percent, room for 5 % of 1.3 million keys, and Zipf exponents from 0,
// which is uniform. "Shift" is what follows when all keys have changed their popularity.
// The scans go over all keys once, "x3" with three asks for each, and what is counted
// are the hits of others, who ask with an exponent of 1: after the scan when it was
// alone, else during it, one ask of theirs per ten keys of the scan.
//
//	                0   0.8     1   1.2  shift  scan alone  alone x3  10 scan per 1 x3
//	LRU           5.0  39.2  72.3  93.4   70.7        58.7      58.7              52.5
//	SIEVE         5.0  47.0  76.3  93.9   64.1        75.3      58.7              51.0
//	W-TinyLFU     4.9  48.1  76.9  93.8   65.5        75.7      75.0              75.4
//	this package  5.0  48.6  77.2  94.0   68.6        76.8      76.8              76.7
//
// Made by go test -run '^$' -bench HitRatio -benchtime 1x ./workers/cache. W-TinyLFU is
// that of github.com/maypok86/otter/v2 v2.3.0, which comes closest. Like the others of
// its kind it is made to be shared: it has locks, buffers and goroutines that a single
// owner pays for and does not need, and it took two to three times as long here.
package cache
