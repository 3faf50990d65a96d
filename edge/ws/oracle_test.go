package ws_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	gobwas "github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/ommer/ommer/edge/ws"
)

// Two other servers are asked what they make of the same bytes. Neither shares
// more with this package than gobwas does the XOR.

// verdict is what a server made of an input: Code is 0 when it wants more.
type verdict struct {
	Events []string
	Code   ws.Code
}

// An oracle is another server, and where it and this package are known to differ.
type oracle struct {
	name string
	read func(t testing.TB, in []byte) verdict
	// lenient lists the reasons for which we refuse and it does not.
	lenient map[string]string
}

var oracles = []oracle{
	{
		name: "gobwas",
		read: readGobwas,
		lenient: map[string]string{
			"length not in its shortest form":  "it does not check the MUST of RFC 6455 section 5.2",
			"control frame with a long length": "it accepts a short length in its long form, likewise",
			"invalid close code":               "it accepts codes from 5000 up, for which section 7.4.2 has no range",
		},
	},
	{
		name: "coder",
		read: readCoder,
		lenient: map[string]string{
			"length not in its shortest form":  "it does not check the MUST of RFC 6455 section 5.2",
			"control frame with a long length": "it accepts a short length in its long form, likewise",
			"text is not UTF-8":                "it leaves that to its caller, who has whole messages only",
			"message too big":                  "it counts what arrived, not what a header announces; its limit is off here",
		},
	},
}

// compare judges the same input by this package and by the oracles.
func compare(t *testing.T, in []byte) {
	t.Helper()
	ours := feed(t, newReader(), in)
	for _, o := range oracles {
		theirs := o.read(t, in)
		if theirs.Code == 0 && (ours.Code == ws.CodeProtocolError || ours.Code == ws.CodeTooBig) {
			// We decide on the first bytes of a header, they on all of them.
			theirs = o.read(t, append(slices.Clone(in), make([]byte, 14)...))
		}
		if theirs.Code == ours.Code && slices.Equal(theirs.Events, ours.Events) {
			continue
		}
		before := len(theirs.Events) >= len(ours.Events) && slices.Equal(theirs.Events[:len(ours.Events)], ours.Events)
		if before && o.lenient[ours.Reason] != "" {
			continue
		}
		t.Errorf("% x\nours:   %q, code %d %s\n%s: %q, code %d", in, ours.Events, ours.Code, ours.Reason, o.name, theirs.Events, theirs.Code)
	}
}

// readGobwas asks the reader of gobwas/ws.
func readGobwas(_ testing.TB, in []byte) verdict {
	var v verdict
	r := wsutil.Reader{
		Source:         bytes.NewReader(in),
		State:          gobwas.StateServerSide,
		CheckUTF8:      true,
		MaxMessageSize: limit,
	}
	closed := errors.New("closed")
	control := func(h gobwas.Header, payload io.Reader) error {
		p, err := io.ReadAll(payload)
		if err == nil && int64(len(p)) < h.Length {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		switch h.OpCode {
		case gobwas.OpPing:
			v.Events = append(v.Events, event("ping", p))
		case gobwas.OpPong:
			v.Events = append(v.Events, event("pong", p))
		case gobwas.OpClose:
			if len(p) == 1 {
				return gobwas.ProtocolError("close frame of one byte")
			}
			if len(p) > 1 {
				code, reason := gobwas.ParseCloseFrameData(p)
				if code >= 1012 && code <= 1014 {
					code = gobwas.StatusInternalServerError // it does not know what IANA's registry has added
				}
				if err := gobwas.CheckCloseFrameData(code, reason); err != nil {
					return err
				}
			}
			v.Events = append(v.Events, event("close", p))
			return closed
		}
		return nil
	}
	r.OnIntermediate = control
	for {
		h, err := r.NextFrame()
		if err == nil && h.OpCode.IsControl() {
			err = control(h, &r)
		} else if err == nil {
			var p []byte
			if p, err = io.ReadAll(&r); err == nil {
				v.Events = append(v.Events, event(map[gobwas.OpCode]string{gobwas.OpText: "text", gobwas.OpBinary: "binary"}[h.OpCode], p))
			}
		}
		var protocol gobwas.ProtocolError
		switch {
		case err == nil:
			continue
		case errors.Is(err, closed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return v
		case errors.Is(err, wsutil.ErrMessageTooLarge):
			v.Code = ws.CodeTooBig
		case errors.Is(err, wsutil.ErrInvalidUTF8), errors.Is(err, gobwas.ErrProtocolInvalidUTF8):
			v.Code = ws.CodeInvalidData
		case errors.Is(err, gobwas.ErrHeaderLengthMSB), errors.As(err, &protocol):
			v.Code = ws.CodeProtocolError
		default:
			v.Code = ws.CodeInternalError // nothing that we would say
		}
		return v
	}
}

// readCoder asks the server of coder/websocket.
func readCoder(t testing.TB, in []byte) verdict {
	var v verdict
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": rfcKey,
	} {
		req.Header.Set(name, value)
	}
	conn := &playback{bytes.NewReader(in)}
	c, err := websocket.Accept(hijacked{httptest.NewRecorder(), conn}, req, &websocket.AcceptOptions{
		OnPingReceived: func(_ context.Context, p []byte) bool {
			v.Events = append(v.Events, event("ping", p))
			return false
		},
		OnPongReceived: func(_ context.Context, p []byte) { v.Events = append(v.Events, event("pong", p)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(-1)
	for {
		typ, p, err := c.Read(context.Background())
		if err == nil && typ == websocket.MessageText && !utf8.Valid(p) {
			v.Code = ws.CodeInvalidData
			return v
		}
		if err == nil {
			v.Events = append(v.Events, event(map[websocket.MessageType]string{websocket.MessageText: "text", websocket.MessageBinary: "binary"}[typ], p))
			continue
		}
		var ce websocket.CloseError
		switch {
		case errors.As(err, &ce) && !utf8.ValidString(ce.Reason):
			v.Code = ws.CodeInvalidData
		case errors.As(err, &ce):
			var p []byte
			if ce.Code != websocket.StatusNoStatusRcvd {
				p = append(binary.BigEndian.AppendUint16(nil, uint16(ce.Code)), ce.Reason...)
			}
			v.Events = append(v.Events, event("close", p))
		case !errors.Is(err, errCut):
			v.Code = ws.CodeProtocolError
		}
		return v
	}
}

// errCut ends what a playback has to say. With io.EOF in its place coder/websocket
// would take a message that was cut off for a whole one.
var errCut = errors.New("connection cut")

// playback is a connection on which the client has said everything already and
// nobody reads the answers.
type playback struct {
	said *bytes.Reader
}

func (p *playback) Read(b []byte) (int, error) {
	n, err := p.said.Read(b)
	if err != nil {
		err = errCut
	}
	return n, err
}

func (*playback) Write(p []byte) (int, error)      { return len(p), nil }
func (*playback) Close() error                     { return nil }
func (*playback) LocalAddr() net.Addr              { return nil }
func (*playback) RemoteAddr() net.Addr             { return nil }
func (*playback) SetDeadline(time.Time) error      { return nil }
func (*playback) SetReadDeadline(time.Time) error  { return nil }
func (*playback) SetWriteDeadline(time.Time) error { return nil }

// hijacked is a response whose connection is a playback.
type hijacked struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}
