package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/lesismal/nbio"

	"github.com/ommer/ommer/deploy/child"
)

// yardstickCommand is the argument that makes this program one of the servers that
// Ommer is measured against: nothing but an answer, always the same.
const yardstickCommand = "answer-always-the-same"

// yardstick is what that process is told on its standard input.
type yardstick struct {
	Addr              string
	CertFile, KeyFile string // net/http with TLS; empty: bare nbio without
	Answer            []byte
}

// serve answers until its input ends.
func (y yardstick) serve(in io.Reader) error {
	var end func(context.Context) error
	var err error
	if y.CertFile == "" {
		end, err = y.serveBare()
	} else {
		end, err = y.serveHTTP()
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return errors.Join(err, end(context.Background()))
}

// idMember comes before a call's id, which the load gives ten digits.
var idMember = []byte(`"id":`)

const idDigits = 10

// idOf is the id in a request or an answer, nil if there is none.
func idOf(b []byte) []byte {
	_, id, found := bytes.Cut(b, idMember)
	if !found || len(id) < idDigits {
		return nil
	}
	return id[:idDigits]
}

// serveBare is an nbio engine that writes the answer, with the id of the request, when
// something arrives: one read and one write a request, no parsing, no key, no bus.
// Nothing that runs on nbio can do much less. Its clients have one request outstanding,
// which comes in one piece.
func (y yardstick) serveBare() (stop func(context.Context) error, err error) {
	head := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(y.Answer))
	responses := sync.Pool{New: func() any { r := slices.Concat(head, y.Answer); return &r }}
	e := nbio.NewEngine(nbio.Config{Network: "tcp", Addrs: []string{y.Addr}, NPoller: 2, EpollMod: nbio.EPOLLET, ReadBufferSize: 64 << 10})
	e.OnData(func(c *nbio.Conn, request []byte) {
		r := responses.Get().(*[]byte)
		defer responses.Put(r)
		copy(idOf(*r), idOf(request))
		if _, err := c.Write(*r); err != nil {
			_ = c.Close() // the client has gone
		}
	})
	return func(context.Context) error { e.Stop(); return nil }, e.Start()
}

// serveHTTP is net/http over TLS with a handler that reads the body and writes the
// answer.
func (y yardstick) serveHTTP() (stop func(context.Context) error, err error) {
	pair, err := tls.LoadX509KeyPair(y.CertFile, y.KeyFile)
	if err != nil {
		return nil, err
	}
	length := strconv.Itoa(len(y.Answer))
	before, rest, _ := bytes.Cut(y.Answer, idOf(y.Answer))
	s := http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", length)
			for _, part := range [][]byte{before, idOf(request), rest} {
				_, _ = w.Write(part) // the client notices
			}
		}),
	}
	ln, err := tls.Listen("tcp", y.Addr, s.TLSConfig)
	if err != nil {
		return nil, err
	}
	go func() {
		if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	return s.Shutdown, nil
}

// measureAgainst is the process's main.
func measureAgainst(in io.Reader) error {
	d := json.NewDecoder(in)
	var y yardstick
	if err := d.Decode(&y); err != nil {
		return fmt.Errorf("what to answer: %w", err)
	}
	return y.serve(io.MultiReader(d.Buffered(), in))
}

// startYardsticks starts both. They answer the first question as the edge does.
func (s *stack) startYardsticks(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	addrs, err := child.FreeAddrs(2)
	if err != nil {
		return err
	}
	s.bareAddr, s.netHTTPAddr = addrs[0], addrs[1]
	for _, one := range []struct {
		name string
		to   **child.Process
		yardstick
	}{
		{"bare-nbio", &s.bare, yardstick{Addr: s.bareAddr, Answer: s.answer}},
		{"net-http", &s.netHTTP, yardstick{Addr: s.netHTTPAddr, Answer: s.answer, CertFile: s.certFile, KeyFile: s.keyFile}},
	} {
		told, err := json.Marshal(one.yardstick)
		if err != nil {
			return err
		}
		*one.to, err = child.StartWith(told, s.dir, one.name, self, yardstickCommand)
		if err != nil {
			return err
		}
		if err := (*one.to).Wait(ctx, func(ctx context.Context) error { return child.Accepts(ctx, one.Addr) }); err != nil {
			return err
		}
	}
	return nil
}
