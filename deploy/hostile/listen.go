package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// Ends of a connection that no answer explains.
const (
	endOpen   = "open"   // when the attack was over: the edge did not end it
	endClosed = "closed" // by the edge, without a word
	endReset  = "reset"
	endLeft   = "left"    // the enemy was first
	endCut    = "cut off" // as seen at the edge: who reads nothing sees nothing
)

// endOf is the end that an error of reading means.
func endOf(err error) string {
	var op *net.OpError
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return endClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return endOpen
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return endReset
	case errors.Is(err, net.ErrClosed):
		return endLeft
	case errors.As(err, &op) && op.Op == "remote error": // what crypto/tls makes of an alert
		return "alert: " + strings.TrimPrefix(op.Err.Error(), "tls: ")
	default:
		return "failed: " + err.Error()
	}
}

// lookAt is how much of an answer is looked at for a JSON-RPC error.
const lookAt = 256

// codeOf returns the JSON-RPC error code that an answer begins with, with a space
// before it, or nothing.
func codeOf(answer []byte) string {
	_, rest, found := bytes.Cut(answer, []byte(`"error":{"code":`))
	code, _, ended := bytes.Cut(rest, []byte(","))
	if !found || !ended {
		return ""
	}
	return " " + string(code)
}

// converse reads HTTP responses, and frames once there is a WebSocket, and counts
// them. It returns the end: the status of a response that was said to be the last
// one, the code of a close frame, or what befell the connection.
func (e *enemy) converse(r *bufio.Reader) (end string) {
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return endOf(err)
		}
		start, err := io.ReadAll(io.LimitReader(resp.Body, lookAt))
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		_ = resp.Body.Close() // read to its end
		if err != nil {
			return endOf(err)
		}
		answer := fmt.Sprint(resp.StatusCode, codeOf(start))
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			close(e.upgraded)
			return e.frames(r)
		case resp.Close:
			return fmt.Sprint(resp.StatusCode)
		}
		e.army.report.answer(answer)
	}
}

// frames reads the frames of a server. A ping is not answered.
func (e *enemy) frames(r *bufio.Reader) (end string) {
	for {
		op, payload, err := readFrame(r)
		switch {
		case err != nil:
			return endOf(err)
		case op == opClose && len(payload) >= 2:
			return fmt.Sprint("close ", binary.BigEndian.Uint16(payload))
		case op == opClose:
			return "close"
		case op == opPing:
		case op == opPong:
			e.army.report.answer("pong")
		default:
			e.army.report.answer("message" + codeOf(payload))
		}
	}
}

// skip reads what it does not understand.
func (e *enemy) skip() (end string) {
	_, err := io.Copy(io.Discard, e.conn)
	return endOf(err)
}
