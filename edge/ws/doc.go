// Package ws is RFC 6455, the WebSocket protocol, for a server on an event loop:
// the opening handshake, a Reader that turns bytes into messages, and functions
// that append frames.
//
// It does no I/O, starts no goroutines and keeps no time. The session owns the
// connection: it feeds the Reader whatever arrived, in pieces of any size, and
// acts on one Event at a time.
//
//	for len(in) > 0 {
//		n, event, payload, err := reader.Next(in)
//		in = in[n:]
//		...
//	}
//	reader.Release()
//
// A Reader and the slices it hands out belong to one goroutine at a time. A Pool
// may be used from any number of them.
//
// # Memory
//
// A frame that is all there is unmasked where it lies and handed out without a
// copy. Only what comes in parts, over several reads or several fragments, is
// collected, in a buffer of the Pool that is given back once the message was
// handled. So a connection without a message under way costs the Reader alone, 64
// bytes. One with a message under way costs at most twice the bytes that really
// arrived, 512 at least and never twice Limits.Message, whatever a header claims;
// a control frame in parts takes another 512. Reader.Buffered tells how much it
// is, for a server that bounds the sum over its connections.
//
// The number of fragments of a message is not bounded, nor is the number of
// control frames: an empty fragment and a ping cost the 6 bytes of their header,
// no memory, and no more time than reading any other 6 bytes.
//
// # Strictness
//
// What the RFC forbids a client ends the connection, as its section 7.1.7 allows,
// with the code that the RFC names. That includes two rules that many servers let
// pass: a length in more bytes than it needs (section 5.2) and a close code that
// must not be on the wire (section 7.4). Text is checked for UTF-8 while it
// arrives, so that a wrong byte is refused without waiting for the message's end.
//
// No extension is ever negotiated, permessage-deflate included: its window would
// cost each connection more memory than all the rest. So the three reserved bits
// are always an error.
package ws
