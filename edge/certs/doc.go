// Package certs keeps what TLS needs from files: certificates with their keys, and
// the keys that session tickets are encrypted with.
//
// A Store reads the files again when they change and when it is told to. Handshakes
// that begin afterwards use what was read; a connection keeps what it began with and
// notices nothing. What cannot be used is logged once and changes nothing. Each pair,
// and the ticket keys, stand for themselves: one that is broken does not keep the
// others from being renewed.
//
// Changes are found by reading the files and comparing what they hold: they are small,
// a replaced link on the way to them (Kubernetes mounts secrets behind two) needs no
// care, and nothing rests on the resolution of file times. They are taken once they
// were the same twice in a row, so that a pair or a chain that is just being written
// is neither used nor complained about.
//
// Everything else is crypto/tls: which certificate a client gets
// (ClientHelloInfo.SupportsCertificate, the first pair if none fits), TLS 1.2 and 1.3
// (of the cipher suites of 1.2 those that RFC 9325 recommends), and ALPN, where only
// http/1.1 is offered: who insists on another protocol is refused with
// no_application_protocol (RFC 7301 section 3.2).
//
// Without a file of ticket keys crypto/tls makes keys of its own, a new one each day,
// and takes the old ones for a week; they are kept when certificates change, and known
// to no other process. With a file, whoever has it can read every TLS 1.2 connection
// that was given a ticket, and pose as the server to clients that resume: rotate it.
//
// A Store may be used from any number of goroutines. The package logs no key and has
// none in an error, and it must not serve connections.
package certs
