// Package codel tells a queue that stands from one that passes, as CoDel does
// (RFC 8289): not by its length, nor by how long somebody waited, but by the least that
// anybody waited within a while. A burst fills a queue and is gone; while it is
// worked off the least wait comes down to nothing. When even the luckiest has
// waited for longer than the target all the time, then more comes than is answered,
// and those who wait only make each other late.
//
// What is done then is that of Facebook's variant (Nygren and others, "Fail at Scale",
// ACM Queue 2015): who has waited for twice the target is refused. A refusal costs a
// fraction of an answer, so nearly all the work is answers, and each of them comes soon.
//
// A Gate and a Line belong to who takes from the queue and are not safe for concurrent
// use. The package imports nothing of ours.
package codel
