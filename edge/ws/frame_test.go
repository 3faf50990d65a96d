package ws_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coder/websocket"
	gobwas "github.com/gobwas/ws"

	"github.com/ommer/ommer/edge/ws"
)

func TestAppendFrame(t *testing.T) {
	tests := []struct {
		name   string
		op     ws.Op
		length int
		header []byte
	}{
		{"empty text", ws.OpText, 0, []byte{0x81, 0}},
		{"text of 125", ws.OpText, 125, []byte{0x81, 125}},
		{"text of 126", ws.OpText, 126, []byte{0x81, 126, 0, 126}},
		{"binary of 65535", ws.OpBinary, 65535, []byte{0x82, 126, 0xFF, 0xFF}},
		{"binary of 65536", ws.OpBinary, 65536, []byte{0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0}},
		{"ping", ws.OpPing, 4, []byte{0x89, 4}},
		{"pong of 125", ws.OpPong, 125, []byte{0x8A, 125}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			payload := bytes.Repeat([]byte("x"), tt.length)
			want := "before" + string(tt.header) + string(payload)
			if got := string(ws.AppendFrame([]byte("before"), tt.op, payload)); got != want {
				t.Errorf("got %.40q, want %.40q", got, want)
			}
			if got := ws.AppendHeader(nil, tt.op, tt.length); !bytes.Equal(got, tt.header) {
				t.Errorf("got header % x, want % x", got, tt.header)
			}
			if tt.length > 0xFFFF && len(tt.header) != ws.MaxHeader {
				t.Errorf("MaxHeader is %d, want %d", ws.MaxHeader, len(tt.header))
			}
		})
	}
}

func TestAppendClose(t *testing.T) {
	long := strings.Repeat("x", 122) + "é"
	tests := []struct {
		name   string
		code   ws.Code
		reason string
		want   string
	}{
		{"code and reason", ws.CodeTooBig, "message too big", "\x88\x11\x03\xf1message too big"},
		{"code alone", ws.CodeGoingAway, "", "\x88\x02\x03\xe9"},
		{"an application's code", 4401, "key revoked", "\x88\x0d\x11\x31key revoked"},
		{"no code", ws.CodeNoStatus, "ignored", "\x88\x00"},
		{"a reason that fits", ws.CodeNormal, long[1:], "\x88\x7d\x03\xe8" + long[1:]},
		{"a reason cut to what fits", ws.CodeNormal, long[:122] + "yz", "\x88\x7d\x03\xe8" + long[:122] + "y"},
		{"a reason cut before a character", ws.CodeNormal, long, "\x88\x7c\x03\xe8" + long[:122]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := string(ws.AppendClose(nil, tt.code, tt.reason))
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if !utf8.ValidString(got[min(4, len(got)):]) {
				t.Errorf("the reason in %q is not UTF-8", got)
			}
		})
	}
}

// The codes have the numbers of RFC 6455 section 7.4.1 and IANA's registry.
func TestCodes(t *testing.T) {
	for got, want := range map[ws.Code]websocket.StatusCode{
		ws.CodeNormal:          websocket.StatusNormalClosure,
		ws.CodeGoingAway:       websocket.StatusGoingAway,
		ws.CodeProtocolError:   websocket.StatusProtocolError,
		ws.CodeNoStatus:        websocket.StatusNoStatusRcvd,
		ws.CodeInvalidData:     websocket.StatusInvalidFramePayloadData,
		ws.CodePolicyViolation: websocket.StatusPolicyViolation,
		ws.CodeTooBig:          websocket.StatusMessageTooBig,
		ws.CodeInternalError:   websocket.StatusInternalError,
		ws.CodeTryAgainLater:   websocket.StatusTryAgainLater,
	} {
		if int(got) != int(want) {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}

// What cannot be a frame is a mistake of the caller's and is not sent.
func TestAppendPanics(t *testing.T) {
	tests := []struct {
		name string
		call func()
	}{
		{"long pong", func() { ws.AppendFrame(nil, ws.OpPong, make([]byte, 126)) }},
		{"long close", func() { ws.AppendHeader(nil, ws.OpClose, 126) }},
		{"abnormal closure", func() { ws.AppendClose(nil, 1006, "") }},
		{"no code at all", func() { ws.AppendClose(nil, 0, "") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			tt.call()
		})
	}
}

// A client's close is answered with its own code.
func TestCloseIsEchoed(t *testing.T) {
	for _, tt := range []struct {
		name       string
		in         []byte
		want       string
		wantReason string
	}{
		{"with code and reason", closing(4000, "done"), "\x88\x02\x0f\xa0", "done"},
		{"without", frame(0x88, ""), "\x88\x00", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReader()
			_, ev, payload, err := r.Next(tt.in)
			if ev != ws.Close || err != nil {
				t.Fatalf("got event %d, error %v", ev, err)
			}
			code, reason := ws.ParseClose(payload)
			if got := string(ws.AppendClose(nil, code, "")); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if string(reason) != tt.wantReason {
				t.Errorf("got reason %q, want %q", reason, tt.wantReason)
			}
		})
	}
}

// The code of every refusal can be sent.
func TestEveryErrorCanBeSent(t *testing.T) {
	for _, in := range [][]byte{{0x81, 0}, text("\xff"), framed([]byte{0x81, 0xFF, 0, 0, 0, 0, 1, 0, 0, 0}, "")} {
		r := newReader()
		_, _, _, err := r.Next(in)
		if err == nil {
			t.Fatalf("% x was accepted", in)
		}
		h, herr := gobwas.ReadHeader(bytes.NewReader(ws.AppendClose(nil, err.Code, err.Reason)))
		if herr != nil || h.OpCode != gobwas.OpClose || h.Length != int64(2+len(err.Reason)) {
			t.Errorf("error %v: got %+v, %v", err, h, herr)
		}
	}
}
