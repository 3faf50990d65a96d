package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"
)

func TestAppendResponse(t *testing.T) {
	var date Date
	if v := date.Value(); v != nil {
		t.Errorf("the zero Date has the value %q", v)
	}
	date.Set(time.Date(2026, 3, 7, 1, 2, 3, 4, time.FixedZone("", 3600)))
	for _, tt := range []struct {
		name string
		r    Response
		want string
	}{
		{
			"answer",
			Response{Status: 200, ContentType: "application/json", Date: date.Value(), Fields: []byte("Vary: Origin\r\nX: 1\r\n"), Body: []byte("{}")},
			"HTTP/1.1 200 OK\r\nDate: Sat, 07 Mar 2026 00:02:03 GMT\r\nVary: Origin\r\nX: 1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		},
		{"empty", Response{Status: 200}, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		{"refusal", Response{Status: 413, Close: true, KeepAlive: true}, "HTTP/1.1 413 Request Entity Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		{"keep-alive", Response{Status: 404, KeepAlive: true}, "HTTP/1.1 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"},
		{"head", Response{Status: 405, Body: []byte("text"), Head: true}, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 4\r\n\r\n"},
		{"no content", Response{Status: 204, ContentType: "a/b", Body: []byte("text")}, "HTTP/1.1 204 No Content\r\n\r\n"},
		{"not modified", Response{Status: 304, Body: []byte("text")}, "HTTP/1.1 304 Not Modified\r\n\r\n"},
		{
			"upgrade",
			Response{Status: 101, Fields: []byte("Connection: Upgrade\r\nUpgrade: websocket\r\n")},
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		},
		{"unknown status", Response{Status: 299}, "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := AppendResponse([]byte("before"), tt.r)
			if string(got) != "before"+tt.want {
				t.Errorf("got  %q\nwant %q", got, "before"+tt.want)
			}
		})
	}
}

// TestResponsesAreRead has net/http's client read every status, two answers in a
// row, so that a wrong length would show.
func TestResponsesAreRead(t *testing.T) {
	for status := 200; status < 600; status++ {
		for _, method := range []string{"POST", "HEAD"} {
			r := Response{Status: status, ContentType: "text/plain", Body: []byte("body"), Head: method == "HEAD"}
			stream := bufio.NewReader(bytes.NewReader(AppendResponse(AppendResponse([]byte(Continue), r), r)))
			if resp, err := http.ReadResponse(stream, nil); err != nil || resp.StatusCode != 100 {
				t.Fatalf("Continue: got %v, %v", resp, err)
			}
			for range 2 {
				resp, err := http.ReadResponse(stream, &http.Request{Method: method})
				if err != nil {
					t.Fatalf("%d to %s: %v", status, method, err)
				}
				body, err := io.ReadAll(resp.Body)
				want := "body"
				if r.Head || status == 204 || status == 304 {
					want = ""
				}
				if err != nil || string(body) != want || resp.StatusCode != status {
					t.Errorf("%d to %s: got status %d, body %q, %v", status, method, resp.StatusCode, body, err)
				}
				if phrase := ReasonPhrase(status); phrase != "" && phrase != http.StatusText(status) {
					t.Errorf("%d: got phrase %q, want %q", status, phrase, http.StatusText(status))
				}
			}
			if n, _ := stream.Discard(1); n != 0 {
				t.Errorf("%d to %s: bytes are left", status, method)
			}
		}
	}
}
