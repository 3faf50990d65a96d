// Package codel tells a queue that stands from one that passes, as CoDel does
// (RFC 8289): not by its length, nor by how long somebody waited, but by the least that
// anybody waited within a while. A burst fills a queue and is gone; while it is
// worked off the least wait comes down to nothing. When even the luckiest has
// waited for longer than the target all the time, then more comes than is answered,
// and those who wait only make each other late.
//
// CoDel drops at the head of the queue. That suits packets, which cost nothing once they
// are dropped. A refused question is asked again and costs about as much as an answer
// that is in a cache: a server that refuses whom it has let wait can come to do nothing
// else. So a Gate turns away those who come, and whoever was let in is answered. It
// closes for as long as it takes to work off what is too much, so that there is always
// work.
//
// The package imports nothing of ours.
package codel
