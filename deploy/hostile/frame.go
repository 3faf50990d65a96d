package main

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Opcodes and the FIN bit, RFC 6455 section 5.2.
const (
	opContinuation = 0x0
	opText         = 0x1
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
	fin            = 0x80
)

// frame is a client's frame. The mask is zeros, which changes nothing of the payload
// and costs the edge the same. first is the opcode with the FIN bit.
func frame(first byte, payload []byte) []byte {
	return append(frameHead(first, len(payload)), payload...)
}

// frameHead is the header of a frame with a payload of a length, which need not follow.
func frameHead(first byte, length int) []byte {
	const masked = 0x80
	b := []byte{first}
	switch {
	case length < 126:
		b = append(b, masked|byte(length))
	case length <= 0xFFFF:
		b = binary.BigEndian.AppendUint16(append(b, masked|126), uint16(length))
	default:
		b = binary.BigEndian.AppendUint64(append(b, masked|127), uint64(length))
	}
	return append(b, 0, 0, 0, 0)
}

// readFrame reads a server's frame, which is not masked. Of a long payload only the
// start is returned.
func readFrame(r *bufio.Reader) (op byte, payload []byte, err error) {
	var b [8]byte
	if _, err = io.ReadFull(r, b[:2]); err != nil {
		return 0, nil, err
	}
	op = b[0] & 0x0F
	length := uint64(b[1] & 0x7F)
	switch length {
	case 126:
		_, err = io.ReadFull(r, b[:2])
		length = uint64(binary.BigEndian.Uint16(b[:2]))
	case 127:
		_, err = io.ReadFull(r, b[:8])
		length = binary.BigEndian.Uint64(b[:])
	}
	if err != nil {
		return 0, nil, err
	}
	payload = make([]byte, min(length, lookAt))
	if _, err = io.ReadFull(r, payload); err != nil {
		return 0, nil, err
	}
	_, err = io.CopyN(io.Discard, r, int64(length)-int64(len(payload)))
	return op, payload, err
}
